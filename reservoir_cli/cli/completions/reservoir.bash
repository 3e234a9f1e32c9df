_reservoir_completion() {
    local answers word
    COMPREPLY=()
    answers=$(_RESERVOIR_COMPLETE=bash command reservoir "${COMP_LINE:0:COMP_POINT}" "$2" \
        </dev/null 2>/dev/null) || compopt +o default 2>/dev/null
    while IFS= read -r word; do
        [[ $word ]] && COMPREPLY+=("$word")
    done <<<"$answers"
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}

complete -o default -F _reservoir_completion reservoir
