"""Break up control tokens of chat templates, and tags of agents around their own text. Pure.

A stored text that holds one could end its message, or speak as the system, a tool or the agent.
The names below are from the published templates and vocabularies of models (Llama, Mistral, Qwen,
DeepSeek, GLM, Gemma, Kimi, MiniMax, Granite, Nemotron, ERNIE, Ling, LongCat, Seed, StarCoder, T5
and others), and from what agents send (Claude Code, Codex, Cline, Cursor, Copilot, Gemini CLI,
Kiro, Windsurf).
"""

import re
from functools import lru_cache
from unicodedata import normalize

from reservoir_cli.util.unicode_text import INVISIBLE, ZERO_WIDTH_SPACE

#: Characters that no one sees and a model reads as letters.
_TAGS = re.compile("[\U000e0000-\U000e007f]+")
#: Invisible characters within a control token, which some tools drop. The zero-width space, which
#: breaks one up, is not among them.
_I = f"[{INVISIBLE}]*"
#: The same, and other characters that are not ASCII, which is compiled far faster.
_N = rf"[^\x00-\x7f{ZERO_WIDTH_SPACE}]*"
#: A few blanks or characters that are not ASCII.
_GAP = rf"[^!-\x7f{ZERO_WIDTH_SPACE}]{{0,16}}"


def _spaced(token: str) -> str:
    return "".join(_N + re.escape(letter) for letter in token)


#: The beginnings of control tokens that are known by their signs. This pattern and those below are
#: compiled when a text needs them.
_SIGNS = (
    rf"<{_I}[|\uff5c](?={_I}(?:[^\s|\uff5c<>{ZERO_WIDTH_SPACE}{INVISIBLE}]{_I}){{1,64}}[|\uff5c]{_I}>)"
    # DeepSeek's <|DSML|invoke name="x"> with full-width bars, one or two
    rf"|<(?={_I}/?(?:{_I}[|\uff5c]){{1,2}}{_I}(?:[A-Z]{_I}){{2,16}}[|\uff5c])"
    # Gemma's <|turn> and <turn|>
    rf"|<{_N}\|(?={_N}(?:[a-z_]{_N}){{1,64}}>)|<(?={_N}(?:[a-z_]{_N}){{1,64}}\|{_N}>)"
    rf"|<(?={_N}<(?:{_N}/)?{_spaced('SYS>>')})"  # Llama 2's <<SYS>> and <</SYS>>
    rf"|\[(?={_N}\|(?:{_N}[A-Za-z]){{2,32}}{_N}\|{_N}\])"  # EXAONE's [|user|]
    # MiniMax's ]~b], [e~[, ]!d~[ and ]<]image[>[
    rf"|\](?={_N}~(?:{_N}!)?{_N}b{_N}[\[\]])|\[(?={_N}e{_N}~{_N}\[)"
    rf"|\](?={_N}!{_N}[a-z]{_N}~{_N}\[)|\](?={_N}<{_N}\](?:{_N}[a-z_]){{1,20}}{_N}\[{_N}>{_N}\[)"
    # Ling's <role>HUMAN</role>
    rf"|<(?={_N}{_spaced('role>')}{_N}\s?(?:{_N}[A-Z]){{4,12}}\s?{_N}<)"
    rf"|<(?={_N}/?{_spaced('permissions instructions>')})"  # Codex's, the only one with a blank
    # Seed's <[fim-suffix]> and <[begin▁of▁sentence]>
    rf"|<(?={_spaced('[fim-')}|{_spaced('[PLHD')}|{_spaced('[beginof')}|{_spaced('[endof')})"
    r"|\u25c1(?=/?[a-z_]{1,32}\u25b7)"  # Kimi's ◁think▷
    # the frame of a context: an end in a text is not the end of the context
    rf"|\[(?={_GAP}(?i:/{_GAP}{_spaced('reservoir')}|{_spaced('reservoir')}\s{_spaced('context')}))"
)
#: A bracket, and what may be a name behind it.
_NAMED = (
    rf"(?P<open>[<\[])(?P<rest>(?:{_N}[/:A-Za-z])"
    rf"{_N}[^\s<>\[\]=\"']*)"
)
#: Names in square brackets.
_BRACKETED = (
    r"/?(?:INST|SYSTEM_PROMPT|MODEL_SETTINGS|AVAILABLE_TOOLS|TOOL_(?:CALLS?|RESULTS?|CONTENT)|ARGS"
    r"|CALL_ID|THINK|IMG(?:_BREAK|_END)?|(?:BEGIN_)?AUDIO|TRANSCRIBE|PREFIX|MIDDLE|SUFFIX"
    r"|STREAMING_(?:PAD|WORD)|(?:REPEAT|NEXT)_AUDIO_TEXT|[gs]?MASK|CLS|SEP|PAD|UNK|BOS|EOS|EOT"
    r"|(?:(?:control|SPECIAL|UNUSED_TOKEN)_|unused_?)\d{1,6})"
)
#: Words of compound tags such as ``<user-prompt-submit-hook>``: a name made of these alone.
_WORDS = frozenset(
    "activated active additional agent agents always answer applied apps args artifact assistant "
    "attached attachment attachments available background bash block blocks call calling calls "
    "caveat claude codebase collaboration command commands content context conversation critical "
    "current cursor data datetime description details developer diagnostics document documents "
    "editor edits end environment environmental ephemeral error errors explicit extra features "
    "feedback final function functions guidance history hook hooks human ide important info "
    "information input instruction instructions issue kiro layout linter list loaded local "
    "manually mcp memories memory message messages meta metadata mode model most network new "
    "notice notification of open opened output permissions persisted personality plan policy post "
    "pre preferences progress project prompt prompts proposed queries query realtime reasoning "
    "recent recently reminder reminders replies reply repository request requests resources "
    "respond response responses result results role rules runtime search selection session shell "
    "skill skills snapshot spec start state stderr stdin stdout steering stop subagent submit "
    "summary supervisor switch system task team teammate terminal text think thinking thought "
    "todo tool tools transcripts turn untrusted update use used user users viewed visible "
    "workspace".split()
)
#: Other names in angle brackets, in small letters, without a slash and a prefix such as ``seed:``:
#: those of one word, and those of several or with a number.
_SINGLE = frozenset(
    # model vocabularies
    "s bos eos pad unk sep cls eot eom eod eop sop eoh eoa reponame "
    # thinking and tools
    "think thinking thought thoughts reflection reasoning scratchpad answer "
    "tools functions toolcall toolcalls toolresponse toolresponses invoke "
    # agents
    "assistant system human instructions env subagent supervisor reminderinstructions userrequest "
    "editfileinstructions "
    "usermemory editorcontext environmentcontext useraction userinstructions repomemory todolist "
    "toolreferences userstyle claudemd".split()
)
#: Names that are ordinary ones elsewhere: only in exactly this form, and not as in ``List<task>``.
_BARE = frozenset(
    "response task feedback rules context memory memories prompt skill attachments escape "
    "PRE SUF MID".split()
)
_ANGLED = (
    # model vocabularies
    r"(?:[be]os|pad|unk|cls|sep|mask|eop)_token|(?:extra_id|special|reserved|unused|control|audio"
    r"|image|mask|loc|seg)_?\d{1,6}|(?:longcat|cot_budget)_[a-z_]+|[a-z]+_never_used_[0-9a-f]+"
    r"|img_context|(?:start|end|begin(?:ning)?)_of_[a-z]+|(?:start|end)_(?:of_)?function_[a-z]+|(?:image|audio)_soft_token"
    r"|fim_(?:prefix|middle|suffix|pad)|file_sep|repo_name|gh_stars|issue_(?:start|comment|closed)"
    r"|jupyter_[a-z]+|empty_output|commit_(?:before|msg|after)"
    # thinking and tools
    r"|scratch_pad|tool_(?:calls?|responses?|code|outputs?)|toolcall_[a-z]+|available_tools"
    r"|arg_(?:key|value)|[a-z]+_(?:tool_calls?|tool_responses?|think)"
    # agents
    r"|command-(?:name|message|args|contents)|bash-input|(?:local-command|bash)-(?:stdout|stderr)"
    r"|ide_opened_file|open_and_recently_viewed_files|attached_files|(?:current|active)_file"
    r"|open_files|terminal_files_information|key_kiro_features|max_thinking_length|total_tokens"
    r"|token_budget"
    r"|(?:file|folder|url)_content|new_task|attempt_completion|ask_followup_question|use_mcp_tool"
    r"|execute_command|write_to_file|replace_in_file|read_file|apply_diff|persisted-output|turn_aborted"
    r"|git_status|info-msg|implicit-rules"
)
#: Names that begin a tag only with more behind them: ``<function=name>``.
_WITH_EQUALS = frozenset(("function", "parameter", "tool"))
_LONGEST = 64
#: Without one of these a text holds no control token, and without one of the second none that is
#: known by its signs.
_OPENINGS = "<[]\u25c1"
_MARKS = (
    *("|", "\uff5c", "SYS", "~", "\u25c1", "role>", "]<]", "<[", "permissions "),
    *("eservoir", "ESERVOIR"),
)
#: Full-width and small forms of ASCII, which a tokenizer may read as ASCII, each by its character.
_FORMS = {
    code: normalize("NFKC", chr(code))
    for code in (*range(0xFF01, 0xFF5F), *range(0xFE47, 0xFE49), *range(0xFE50, 0xFE6C))
    if normalize("NFKC", chr(code)).isascii()
}
_WIDE_BRACKETS = "\uff1c\uff1e\uff3b\uff3d\ufe64\ufe65\ufe47\ufe48"


@lru_cache(128)  # while a window is filled, the same turns are printed repeatedly
def defuse(text: str) -> str:
    """Break up control tokens with a zero-width space, and remove tag characters."""
    if not text.isascii():
        text = _TAGS.sub("", text)
        if any(sign in text for sign in _WIDE_BRACKETS):
            narrow = text.translate(_FORMS)
            return _break_alike(text, narrow, _break_tokens(narrow))
    return _break_tokens(text)


def _break_tokens(text: str) -> str:
    if not any(sign in text for sign in _OPENINGS):  # far faster than the patterns
        return text
    if _may_hold_signs(text):
        text = re.sub(_SIGNS, f"\\g<0>{ZERO_WIDTH_SPACE}", text)
    return re.sub(_NAMED, _break_name, text)


def _break_alike(text: str, narrow: str, broken: str) -> str:
    """Break a text where its narrow form, of the same length, was broken."""
    parts, index = list[str](), 0
    for character in broken:
        if narrow[index : index + 1] == character:
            character = text[index]
            index += 1
        parts.append(character)
    return "".join(parts)


def _may_hold_signs(text: str) -> bool:
    """Return whether a text may hold a token known by its signs, whatever is hidden in it."""
    visible = text if text.isascii() else text.encode("ascii", "ignore").decode()
    return any(mark in (visible if mark.isascii() else text) for mark in _MARKS)


def _break_name(match: re.Match[str]) -> str:
    opening, rest = match["open"], match["rest"]
    if not rest.isascii():
        if ZERO_WIDTH_SPACE in rest:  # it is broken
            return match[0]
        rest = normalize("NFKC", rest).encode("ascii", "ignore").decode()
    following = match.string[match.end() : match.end() + 1]
    if rest.strip("/") in _BARE:
        before = match.string[max(0, match.start() - 1) : match.start()]
        is_control = opening == "<" and following == ">" and not before.isalnum()
    else:
        is_control = len(rest) <= _LONGEST and _is_control(opening, rest, following)
    if is_control:
        return f"{opening}{ZERO_WIDTH_SPACE}{match['rest']}"
    return match[0]


@lru_cache(4096)
def _is_control(opening: str, rest: str, following: str) -> bool:
    if opening == "[":
        return following == "]" and re.fullmatch(_BRACKETED, rest) is not None
    name = rest.strip("/").rpartition(":")[2]
    if name in _WITH_EQUALS:
        prefixed = ":" in rest and name == "parameter"
        return following == "=" or (rest[0] == "/" and name != "tool") or prefixed
    if name.isalpha():
        return name != "S" and name.lower() in _SINGLE
    name = name.lower()
    words = name.replace("-", "_").split("_")
    return _WORDS.issuperset(words) or re.fullmatch(_ANGLED, name) is not None
