Register-ArgumentCompleter -Native -CommandName reservoir -ScriptBlock {
    param($word, $tree, $cursor)
    $Env:_RESERVOIR_COMPLETE = "powershell"
    $Env:_RESERVOIR_LINE = if ($word) { "$tree" } else { "$tree " }
    try {
        reservoir | ForEach-Object {
            $value, $help = $_ -split "`t", 2
            if (-not $help) { $help = $value }
            [System.Management.Automation.CompletionResult]::new(
                $value, $value, 'ParameterValue', $help)
        }
    } finally {
        Remove-Item Env:_RESERVOIR_COMPLETE, Env:_RESERVOIR_LINE
    }
}
