"""The patterns of private keys, and of secrets that are recognised by what surrounds them."""

from typing import NamedTuple


class Rule(NamedTuple):
    """A rule that detects one format of secret.

    :param kind: the name that replaces the secret.
    :param words: lowercase; every match contains one of them, so that the pattern is compiled and
        tried only if a text contains one.
    :param pattern: the secret is the group that matched, or the whole match if there are no groups.
    :param in_code: the value may also be the name of a variable or a resource.
    :param from_word: every match begins with one of the words.
    """

    kind: str
    words: tuple[str, ...]
    pattern: str
    in_code: bool = True
    from_word: bool = False


#: Keys of several lines. The remaining part of a truncated key is a secret, too.
BLOCKS = (
    Rule(
        "private-key",
        ("private key",),
        r"-----BEGIN (?:[A-Z0-9]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^-]|-(?!----BEGIN )){20,20000}?-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"|[\s\\nr]{0,9}[A-Za-z0-9+/=\s\\]{20,20000})",
    ),
    Rule(
        "private-key",
        ("putty-user-key-file-",),
        r"PuTTY-User-Key-File-\d: (?:[^P]|P(?!uTTY-User)){20,20000}?Private-MAC: [0-9a-f]{1,128}",
    ),
)

_KEYS = (
    "api app access auth service account db database priv private client secret encryption master"
    " root admin signing storage shared subscription deploy license".split()
)
_TOKENS = "api access auth refresh bearer session bot".split()


def _last_word_pattern(words: list[str], last: str) -> str:
    """Return a pattern for the last word of names such as ``api_key``."""
    before = (f"(?<={word}{gap}{last})" for word in words for gap in ("", "[_ -]"))
    return f"{last}(?:{'|'.join(before)})"


#: Names of variables that hold secrets, from the significant word on.
_NAMES = (
    f"{_last_word_pattern(_KEYS, 'key')}|{_last_word_pattern(_TOKENS, 'token')}"
    "|pass(?:word|wort|wd|phrase|code)|pwd|contrase(?:ñ|n)a"
    "|secret(?<!existingsecret)(?<!existing_secret)"
    f"|{_last_word_pattern(['db', 'database', 'key'], 'pass')}|(?:pw|pass)(?![a-z])(?<![a-z0-9]pw)"
    "(?<![a-z0-9]pass)"
)
#: Endings of names that hold something about a secret, not the secret itself.
_ABOUT = "".join(
    f"(?<!{ending})"
    for ending in (
        *("id", "name", "path", "file", "url", "uri", "type", "hash", "length", "count", "field"),
        *("version", "label", "policy", "arn", "ref", "hint", "env", "prompt", "regex", "_at"),
        *("header", "algorithm", "_alg", "encryption", "method", "provider", "store", "manager"),
        *("backend", "scope", "source", "size", "limit", "expires", "expiry", "format", "class"),
        *("selector", "engine", "location", "dir", "endpoint", "host", "prefix", "suffix"),
        *("placeholder", "title", "description", "message", "error", "template", "_min", "_max"),
        *("updated", "changed", "created", "date", "ttl", "timeout", "rotation", "days"),
    )
)
_NAME = rf"(?:{_NAMES})[a-z0-9_]{{0,40}}+{_ABOUT}"
_VALUE = r"[^\s\"'`\\,;<>(){}\[\]]"
_QUOTE = r"[\"'`\\]{0,3}"
#: The end of a name in bold type: ``**Password:** value``.
_BOLD = r"\*{0,2}"
#: The ends of a table's cell in Markdown, possibly in bold type or as code.
_CELL_START, _CELL_END = r"[ \t]{0,40}[*`]{0,3}", r"[*`]{0,3}[ \t]{0,40}"
#: A quoted value may contain any punctuation, an unquoted one only what has no syntactic meaning.
_ASSIGNED = (
    rf"(?:\"([^\s\"\\]{{6,200}}+)\"|'([^\s'\\]{{6,200}}+)'"
    rf"|{_QUOTE}({_VALUE}{{6,200}}+)(?![(\[{{]))"
)

#: Secrets recognised by context; the value may be a placeholder or a name. The patterns match
#: lowercased text.
GUESSES = (
    Rule(
        "password-in-url",
        ("://",),
        # A password may contain an @: it ends at the last one before the host.
        r"://[^\s:/?#@\"'`<>\\]{0,200}:"
        r"([^\s/@\"'`<>\\]{1,200}(?:@[^\s/?#@\"'`<>\\]{0,200}){0,9})@[^\s/@]",
        in_code=False,
    ),
    Rule(
        "url-parameter",
        ("sig=", "signature=", "appid=", "key=", "auth=", "x-amz-security-token="),
        r"[?&](?:sig|signature|x-amz-signature|x-amz-security-token|appid|(?:api_?)?key|auth)="
        r"([\w%+/.~-]{20,2000})",
        in_code=False,
    ),
    Rule(
        "authorization",
        ("authorization",),
        r"authorization[\"'\\]{0,4}\s{0,3}[:=]\s{0,3}[\"'\\]{0,4}(?:bearer|basic|token)\s{1,3}"
        r"([a-z0-9._~+/=-]{12,4000})",
    ),
    # Docker's settings, and arguments of HTTP clients
    Rule(
        "authorization",
        ("auth",),
        r"auth(?:\\?\"\s{0,3}:\s{0,3}\\?\"([a-z0-9+/]{16,400}={0,2})\\?\""
        r"|\s{0,3}=?\s{0,3}\(\s{0,3}[\"'][^\s\"']{1,80}[\"']\s{0,3},\s{0,3}"
        r"[\"']([^\s\"']{6,200})[\"']\s{0,3}\))",
    ),
    Rule(
        "aws-secret-key",
        ("aws",),
        r"aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?[\"'=: ]([0-9a-z/+]{40})(?![\w/+])",
        in_code=False,
    ),
    # name = "value", name: value, "name": "value", name => value, --name=value, <name>value</name>,
    # ("name", "value"), in a pair of lines or attributes: name: NAME value: value, and in a row of
    # a table: | name | value |
    Rule(
        "secret-value",
        ("key", "pass", "pw", "secret", "token", "contrase"),
        rf"{_NAME}(?:[\]\"'`\\*]{{0,4}}(?:\s{{0,3}}(?::=|=>|={{1,3}}|:){_BOLD}[ \t]{{0,3}}"
        rf"|>(?=[^\s<]{{6,200}}</)|[\"'\\,]{{0,4}}\s{{1,40}}[\"'\\]{{0,2}}value[\"'\\]{{0,2}}"
        rf"\s{{0,3}}[:=]\s{{0,3}}){_ASSIGNED}"
        rf"|[\"']\s{{0,3}},\s{{0,3}}[\"']([^\s\"'\\]{{6,200}}+)[\"']"
        rf"|{_CELL_END}\|{_CELL_START}([^\s|`*\"'\\,;<>(){{}}\[\]]{{6,200}}+){_CELL_END}\|)",
        from_word=True,
    ),
    # ENV NAME value, setenv NAME value, --name value
    Rule(
        "secret-value",
        ("--", "env "),
        rf"(?:--(?=[a-z])(?<![\w-]--)[a-z0-9-]{{0,30}}?|env (?=[a-z])[a-z0-9_]{{0,40}}?){_NAME}"
        rf"[ \t]{{1,3}}{_ASSIGNED}",
        from_word=True,
    ),
    # "token" alone more often means a token of a text than one of a service.
    Rule(
        "secret-value",
        ("token",),
        r"token(?:(?<![a-z0-9]token)|(?<=\\[nrt]token))[\"'\\*]{0,3}\s{0,3}[=:]"
        rf"{_BOLD}[ \t]{{0,3}}{_QUOTE}({_VALUE}{{12,200}}+)(?![(\[{{])",
        from_word=True,
    ),
    # curl -u name:password, sshpass -p password, mysql -ppassword
    Rule(
        "password-option",
        (" -u", "--user", "sshpass", " -p", " -a", " -w"),
        r" (?:-u {0,3}|--user[ =])[\"']?[^\s:/\"']{1,80}:([^\s/\"']{4,200})"
        rf"|sshpass\s{{1,3}}-p\s{{0,3}}[\"']?({_VALUE}{{4,200}})"
        rf"|\b(?:mysql|mariadb)\w{{0,10}}(?=\s)[^\n]{{0,200}}? -p[\"']?({_VALUE}{{4,200}})"
        rf"|\b(?:redis-cli(?=\s)[^\n]{{0,200}}? -a|ldap\w{{1,10}}(?=\s)[^\n]{{0,200}}? -w"
        rf"|(?:mosquitto_|mongo)\w{{1,10}}(?=\s)[^\n]{{0,200}}? -p"
        rf"|\slogin(?=\s)[^\n]{{0,200}}? -p)"
        rf"\s{{1,3}}[\"']?({_VALUE}{{6,200}})",
    ),
    # .netrc, and .pgpass
    Rule(
        "password-in-file",
        ("login", ":5432:"),
        rf"\blogin\s{{1,3}}\S{{1,80}}[\s/,]{{1,3}}password:?\s{{1,3}}({_VALUE}{{6,200}})"
        rf"|:5432:[^\s:]{{1,80}}:[^\s:]{{1,80}}:({_VALUE}{{6,200}})",
        in_code=False,
    ),
    Rule(
        "password-in-words",
        ("password", "passphrase", "passwort"),
        r"(?:password|passphrase|passwort)(?:\s(?:for|of|on|für)(?:\s[\w.@-]{1,30}){1,3})?"
        r"\s{1,3}(?:is|was|ist|war|lautet)\s{0,3}:?\s{1,3}[\"'`*]{0,3}"
        rf"({_VALUE}{{6,200}})",
    ),
    # CREATE USER name WITH PASSWORD 'value', IDENTIFIED BY 'value'
    Rule(
        "password-in-sql",
        ("password '", "identified "),
        r"(?:password|identified (?:by|with [a-z_0-9]{1,40} by)) '([^\s']{6,200})'",
        from_word=True,
    ),
)
