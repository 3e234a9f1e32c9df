function __reservoir_complete
    set --local words (commandline --current-process --tokenize --cut-at-cursor)
    set --erase words[1]
    set --local current (commandline --current-token --cut-at-cursor)
    set --local answers (env _RESERVOIR_COMPLETE=fish reservoir $words "$current" \
        </dev/null 2>/dev/null)
    set --local code $status
    if set --query answers[1]
        printf '%s\n' $answers
    else if test $code -eq 0
        __fish_complete_path "$current"
    end
end

complete --command reservoir --no-files --arguments '(__reservoir_complete)'
