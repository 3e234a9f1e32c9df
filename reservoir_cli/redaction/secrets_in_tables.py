"""Find secrets in columns below a header, in SQL, and in the data of Secrets of Kubernetes."""

import re
from collections.abc import Generator, Iterable, Iterator

_HEADERS = re.compile(
    r"(?:[a-z]{1,20}[ _-]){0,2}"
    r"(?:password|passwort|passphrase|passwd|pwd|pw|pass|passcode|kennwort|contraseña|mot de passe"
    r"|mdp|senha|密码|pin|secret|totp|token|(?:secret|api|access)[ _-]?key)"
)
#: A text with a table has one of these, in lower case.
TABLE_WORDS = tuple("pass pw secret key token kennwort contrase mdp senha 密码 totp".split())
#: The end of a header, with a delimiter after it, which tells tables from other texts.
_HEADER_END = re.compile(r"[a-z -]{0,12}[ \t\"*`]{0,40}(?:[|\t,;\n]|  |$)")
DELIMITERS = ("|", "\t", ",", ";", "  ")  #: What separates the cells of a table.
_RULER = re.compile(r"[\s|:+=─-]+")
#: The text of a cell, with what encloses it.
_CELL = re.compile(r"\s*(?P<mark>[\"'*`]{0,3})(?P<text>[^\s\"'*`](?:.*\S)??)(?P=mark)\s*$")
#: The columns of a statement of SQL, each of its rows, and a value in a row.
_INSERT = re.compile(r"insert\s[^()\n]{1,200}\(([^()]{1,2000})\)\s{0,40}values")
_ROW = re.compile(
    r"[\s,]{0,40}\(((?:'(?:[^'\\]|''|\\.)*+'|\"(?:[^\"\\]|\"\"|\\.)*+\"|\([^()]{0,200}+\)|[^'\"()])++)\)"
)
_IN_ROW = re.compile(
    r"\s*+(?:\w{0,9}(?P<mark>['\"])(?P<text>(?:\\.|(?P=mark){2}|(?!(?P=mark))[^\\])*+)(?P=mark)"
    r"|(?:\([^()]*+\)|[^,(])*+)[^,]*+(?:,|$)"
)
_MOST_ROWS = 10_000
_LONGEST_LINE = 5_000

_SECRET_KIND = re.compile(r"\bkind[\"']?[ \t]*:[ \t]*[\"']?secret\b")
_DATA = re.compile(r"^([ \t]*)(?:data|stringdata):[ \t]*\n", re.MULTILINE)
_ENTRY = re.compile(r"[ \t]+[\"']?[\w.-]+[\"']?:[ \t]*[\"']?([^\s\"'|>][^\s\"']{3,})[\"']?[ \t]*$")
_JSON_DATA = re.compile(r"\"data\"[ \t]*:[ \t]*\{([^{}]*)\}")
_JSON_ENTRY = re.compile(r":\s*\"([A-Za-z0-9+/=]{4,})\"")


def cells_below_headers(text: str, lowered: str, words: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the cells of each column whose header names a secret."""
    done = 0
    for position in sorted(_header_positions(lowered, words)):
        if position < done:
            continue
        line, after = _line_at(lowered, lowered.rfind("\n", 0, position) + 1)
        line = line.replace("||", "|")  # the headers of a wiki
        done = after
        delimiter = _delimiter_of(line)
        if len(line) > _LONGEST_LINE or not delimiter or _is_list_in_code(line, delimiter):
            continue
        columns = {
            number
            for number, (start, end) in enumerate(_cells(line, delimiter))
            if (cell := _CELL.match(line[start:end])) and _HEADERS.fullmatch(cell["text"])
        }
        if columns:
            done = yield from _cells_of(text, after, delimiter, columns)


def values_of_inserts(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the texts that a statement of SQL puts into columns that name a secret."""
    for insert in _INSERT.finditer(lowered):
        names = [name.strip(' \t\r\n`"[]') for name in insert[1].split(",")]
        columns = {number for number, name in enumerate(names) if _HEADERS.fullmatch(name)}
        position = insert.end()
        while columns and (row := _ROW.match(text, position)):
            position = row.end()
            for number, cell in enumerate(_IN_ROW.finditer(row[1])):
                if number in columns and cell["text"]:
                    yield row.start(1) + cell.start("text"), row.start(1) + cell.end("text")


def _is_list_in_code(line: str, delimiter: str) -> bool:
    """Return whether a line with commas is one name of a list rather than the header of a table."""
    cells = [cell for cell in line.split(delimiter) if cell.strip()]
    return delimiter in ",;" and (len(cells) < 2 or not set(":#{}=").isdisjoint(line))


def _header_positions(lowered: str, words: Iterable[str]) -> Iterator[int]:
    for word in words:
        position = lowered.find(word)
        while position >= 0:
            if _HEADER_END.match(lowered, position + len(word)):
                yield position
            position = lowered.find(word, position + len(word))


def _cells_of(
    text: str, start: int, delimiter: str, columns: set[int]
) -> Generator[tuple[int, int], None, int]:
    for _ in range(_MOST_ROWS):
        line, after = _line_at(text, start)
        is_ruler = line.strip() and _RULER.fullmatch(line)
        if len(line) > _LONGEST_LINE or not (is_ruler or _delimiter_of(line) == delimiter):
            break
        if not is_ruler:
            cells = _cells(line, delimiter)
            for number in columns & set(range(len(cells))):
                low, high = cells[number]
                if cell := _CELL.match(line[low:high]):
                    yield start + low + cell.start("text"), start + low + cell.end("text")
        start = after
    return start


def _line_at(text: str, start: int) -> tuple[str, int]:
    end = text.find("\n", start)
    return (text[start:end], end + 1) if end >= 0 else (text[start:], len(text))


def _delimiter_of(line: str) -> str:
    """Return what separates the cells of a line: two blanks if nothing else does."""
    return next((delimiter for delimiter in DELIMITERS if delimiter in line.strip(" ")), "")


def _cells(line: str, delimiter: str) -> list[tuple[int, int]]:
    pattern = r" {2,}" if delimiter == "  " else re.escape(delimiter)
    if delimiter in ",;\t" and '"' in line:  # not a delimiter between quotes
        quoted = rf'(?<![^\s{pattern}])"(?:[^"]|""){{0,300}}+"(?=\s{{0,9}}(?:{pattern}|$))'
        matches = re.finditer(f"{quoted}|(?P<end>{pattern})", line)
        ends = [match.span() for match in matches if match["end"]]
    else:
        ends = [match.span() for match in re.finditer(pattern, line)]
    starts = [0, *(end for _, end in ends)]
    return list(zip(starts, [*(start for start, _ in ends), len(line)], strict=True))


def values_of_kubernetes(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the data of Secrets of Kubernetes, in YAML and JSON."""
    if not _SECRET_KIND.search(lowered):
        return
    start = 0
    for document in re.split(r"(?<=\n---)", text):
        if _SECRET_KIND.search(document.lower()):
            for low, high in _data_of(document):
                yield start + low, start + high
        start += len(document)


def _data_of(document: str) -> Iterator[tuple[int, int]]:
    for data in _DATA.finditer(document.replace("stringData", "stringdata")):
        position = data.end()
        while position < len(document):
            line, after = _line_at(document, position)
            entry = _ENTRY.match(line)
            if not line.startswith((data[1] + " ", data[1] + "\t")):
                break
            if entry:
                yield position + entry.start(1), position + entry.end(1)
            position = after
    for data in _JSON_DATA.finditer(document):
        for entry in _JSON_ENTRY.finditer(data[1]):
            yield data.start(1) + entry.start(1), data.start(1) + entry.end(1)
