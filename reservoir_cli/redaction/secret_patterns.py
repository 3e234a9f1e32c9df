"""The patterns of private keys, and of secrets that are recognised by what surrounds them."""

from typing import NamedTuple

from reservoir_cli.redaction.false_alarms import Proof


class Rule(NamedTuple):
    """A rule that detects secrets by their surroundings.

    :param kind: the name that replaces the secret.
    :param words: lowercase; every match contains one of them, so that the pattern is compiled and
        tried only if a text contains one.
    :param pattern: the secret is the group that matched; without groups, the whole match.
    :param in_code: the value may also be the name of a variable or a resource.
    :param from_word: every match begins with one of the words.
    :param proof: how surely the surroundings say that the value is a secret.
    :param reads: the secret is the value that follows the match.
    """

    kind: str
    words: tuple[str, ...]
    pattern: str
    in_code: bool = True
    from_word: bool = False
    proof: Proof = Proof.WEAK
    reads: bool = False


#: Keys of several lines. The remaining part of a truncated key is a secret, too.
BLOCKS = (
    Rule(
        "private-key",
        ("private key",),
        r"-----?[ ]?BEGIN (?:[A-Z0-9]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?[ ]?-----?"
        r"(?:(?:[^-]|-(?!---[- ]?BEGIN )){20,100000}?-----?[ ]?END [A-Z0-9 ]{0,30}PRIVATE KEY"
        r"(?: BLOCK)?[ ]?-----?|[\s\\nr]{0,9}[A-Za-z0-9+/=\s\\]{20,}+)",
    ),
    Rule(
        "private-key",
        ("putty-user-key-file-",),
        r"PuTTY-User-Key-File-\d: (?:[^P]|P(?!uTTY-User)){20,100000}?Private-MAC: [0-9a-f]{1,128}",
    ),
)

_KEYS = (
    "api app access auth service account db database priv private client secret encryption master"
    " root admin signing storage shared preshared subscription deploy license consumer webhook host"
    " account ssh hmac crypt cipher unseal recovery project server rest sdk integration function"
    " functions sas write personal user".split()
)
_TOKENS = (
    "api access auth refresh bearer session bot id csrf xsrf personal user admin root secret deploy"
    " ci github gitlab npm hf service bootstrap join registration runner oauth app vault push"
    " verification device reset sas security upload install".split()
)


def _last_word_pattern(words: list[str], last: str) -> str:
    """Return a pattern for the last word of names such as ``api_key``."""
    before = (f"(?<={word}{gap}{last})" for word in dict.fromkeys(words) for gap in ("", "[_ -]"))
    return f"{last}(?:{'|'.join(before)})"


#: Words for a password in other languages.
_FOREIGN = (
    "contrase(?:ñ|n)a|mot de passe|mot-de-passe|motdepasse|mdp(?![a-z])|senha|wachtwoord|kennwort"
    "|kenn?ung und passwort|zugangscode|l(?:ö|o)senord|has(?:ł|l)o(?![a-z])|пароль|şifre|parola"
    "|密码|密碼|口令|密钥|密鑰|令牌|パスワード|비밀번호|암호|clave(?![a-z])"
)
_FOREIGN_WORDS = (
    *("contrase", "mot de passe", "mot-de-passe", "motdepasse", "mdp", "senha", "wachtwoord"),
    *("kennwort", "zugangscode", "lösenord", "losenord", "hasło", "haslo", "пароль", "şifre"),
    *("parola", "密码", "密碼", "口令", "密钥", "密鑰", "令牌", "パスワード", "비밀번호", "암호", "clave"),
)
#: Names of passwords, which leave no doubt, from the significant word on.
_PASSWORDS = (
    f"pass(?:word|wort|wd|phrase|code)|pwd|{_last_word_pattern(['db', 'database', 'key'], 'pass')}"
    f"|(?:pw|pass)(?![a-z])(?<![a-z0-9]pw)(?<![a-z0-9]pass)|psk(?![a-z])|{_FOREIGN}"
)
#: Names of variables that hold secrets, from the significant word on.
_NAMES = (
    f"{_last_word_pattern(_KEYS, 'key')}|{_last_word_pattern(_TOKENS, 'token')}"
    f"|secret(?<!existingsecret)(?<!existing_secret)|{_PASSWORDS}"
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
        *("strength", "score", "status", "attempts", "age", "lifetime", "rounds", "cost", "index"),
    )
)
_SUFFIX = rf"[a-z0-9_]{{0,40}}+{_ABOUT}"
_NAME_WORDS = ("key", "pass", "pw", "secret", "token", "psk")
#: The end of a name in bold type: ``**Password:** value``.
_BOLD = r"\*{0,2}"
_VALUE = r"[^\s\"'`\\,;<>(){}\[\]]"
#: The ends of a table's cell in Markdown, possibly in bold type or as code.
_CELL_START, _CELL_END = r"[ \t]{0,40}[*`]{0,3}", r"[*`]{0,3}[ \t]{0,40}"
#: The type of a variable between its name and its value.
_TYPED = r"(?:\?|!)?\s?:\s?[a-z][\w.<>\[\]| ]{0,30}?\s=(?!=)"
_SIGN = rf"(?:{_TYPED}|:=|=>|={{1,3}}|:|：|＝|->|→){_BOLD}"
_ENCODED_SIGN = r"(?:%22|%27){0,1}(?:%3a|%3d)(?:%20|\+)?"
#: name = value, "name": "value", name => value, <add key="name" value="value">, and a pair of lines
#: or attributes: name: NAME value: value.
_ASSIGNS = (
    rf"(?:[\]\"'`\\*)]{{0,4}}(?:\s{{0,3}}|[ \t]{{4,30}}){_SIGN}|{_ENCODED_SIGN}"
    rf"|[\"'\\,]{{0,4}}\s{{1,40}}[\"'\\]{{0,2}}value[\"'\\]{{0,2}}\s{{0,3}}[:=]\s{{0,3}}"
    rf"|[\"'`]\s{{0,3}},\s{{0,3}}(?=[\"'`]))"
)
#: Words between a name and its value in a sentence.
_FOR = (
    r"(?:\s?[(（][^()（）\n]{1,30}[)）]"
    r"|\s(?:for|of|on|at|für|von|zum|zur|pour|de|du|des|del|la|para|van|voor|per)"
    r"(?:\s[\w.@'’/-]{1,30}){1,3}?)?"
)
_IS = (
    r"(?:\s{1,3}(?:(?:is|was|will be|should be|has been|gets?)(?: (?:now|set|changed|reset|updated) ?(?:to)?)?"
    r"|set to|changed to|reset to|to|becomes|reads"
    r"|ist|war|lautet|lautete|heißt|auf|est|était|es|era|será|é|è|jest|är|to jest|to)(?:\s{1,3}now"
    r"|\s{1,3}still|\s{1,3}jetzt|\s{1,3}immer noch|\s{1,3}ahora|\s{1,3}maintenant)?\s{0,3}[:：]?"
    r"(?=[\s\"'`“„«])|\s?(?:是|为|為|设为|改为|改成|就是|は|は、|를|는|은)\s?[:：]?|\s{0,2}[:：]|\s{1,3}[-–—]\s)"
)

#: Secrets recognised by what surrounds them; the value may be a placeholder or a name. The patterns
#: match lowercased text.
GUESSES = (
    Rule(
        "password-in-url",
        ("://",),
        # A password may contain an @: it ends at the last one before the host. It is no port.
        r"://[^\s:/?#@\"'`<>\\]{0,200}:(?!\d{1,5}(?:[/?#]|$))"
        r"([^\s@\"'`<>\\]{1,400}(?:@[^\s/?#@\"'`<>\\]{0,200}){0,9})@[^\s/@]",
        in_code=False,
        proof=Proof.CERTAIN,
    ),
    Rule(
        "url-parameter",
        ("sig=", "signature=", "appid=", "key=", "auth=", "x-amz-security-token=", "code="),
        r"[?&](?:sig|signature|x-amz-signature|x-amz-security-token|appid|(?:api_?)?key|auth"
        r"|subscription-key|code)=([\w%+/.~-]{20,}+)",
        in_code=False,
    ),
    Rule(
        "authorization",
        ("authorization",),
        r"authorization[\"'\\\]]{0,4}\s{0,3}[:=,]\s{0,3}[\"'`\\f]{0,4}(?:bearer|basic|token|apikey"
        r"|api-key|key|bot|digest|ssws|negotiate|splunk|genie ?key|aws)?[\s:=]{0,3}"
        r"([a-z0-9._~+/=-]{12,}+)",
    ),
    Rule(
        "authorization",
        ("bearer ", "basic "),
        r"(?<![a-z0-9])(?:bearer\s{1,3}([a-z0-9._~+/=-]{16,}+)|basic\s{1,3}([a-z0-9+/]{16,}+={0,2}))",
    ),
    # Docker's settings, npm's settings, and arguments of HTTP clients
    Rule(
        "authorization",
        ("auth",),
        r"auth(?:\\?\"\s{0,3}:\s{0,3}\\?\"([a-z0-9+/]{16,}+={0,2})\\?\""
        r"|(?<=_auth)[ \t]{0,3}=[ \t]{0,3}\"?([a-z0-9+/]{12,}+={0,2})"
        r"|\s{0,3}=?\s{0,3}\(\s{0,3}[\"'][^\s\"']{1,80}[\"']\s{0,3},\s{0,3}"
        r"[\"']([^\s\"']{6,}+)[\"']\s{0,3}\))",
        from_word=True,
    ),
    Rule(
        "aws-secret-key",
        ("aws",),
        r"aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?[\"'=: ]([0-9a-z/+]{40})(?![\w/+])",
        in_code=False,
    ),
    Rule(
        "private-key",
        ("client-key-data", '"d"'),
        r"(?:client-key-data[\"']?\s?:\s?[\"']?([a-z0-9+/=]{20,}+)|\"d\"\s?:\s?\"([\w-]{40,}+)\")",
        from_word=True,
    ),
    Rule(
        "session-cookie",
        ("sess", "connect.sid", "sid", "user_session", "li_at", "remember", "cookie", "auth"),
        r"(?<![a-z0-9])(?:phpsessid|jsessionid|sessionid|asp\.net_sessionid|connect\.sid|[\w-]{0,20}"
        r"sess(?:ion)?(?:[_-]?(?:token|id|key))?(?<=cookie)?|user_session|li_at|remember_(?:me|token|web)\w{0,60}"
        r"|__secure-[\w.-]{3,40}|__host-[\w.-]{3,40}|sid|ssid|hsid|sapisid|auth_?(?:token|cookie)?|d)"
        r"=(?=[\w%.~+/:-]{0,60}\d)([\w%.~+/:=-]{16,}+)",
    ),
    # A row of a table: | name | value |, and an element: <name>value</name>
    Rule(
        "secret-value",
        _NAME_WORDS,
        rf"(?:{_NAMES}){_SUFFIX}(?:>([^\s<]{{6,}}+)</"
        rf"|{_CELL_END}\|{_CELL_START}([^\s|`*\"'\\,;<>(){{}}\[\]]{{6,}}+){_CELL_END}\|)",
        from_word=True,
    ),
    Rule(
        "secret-value",
        (*_NAME_WORDS, *_FOREIGN_WORDS),
        rf"(?:{_NAMES}){_SUFFIX}{_ASSIGNS}",
        from_word=True,
        proof=Proof.SURE,
        reads=True,
    ),
    # ENV NAME value, setenv NAME value, setx NAME value, --name value
    Rule(
        "secret-value",
        ("--", "env ", "setx "),
        rf"(?:--(?=[a-z])(?<![\w-]--)[a-z0-9-]{{0,30}}?|(?:env|setx) (?=[a-z])[a-z0-9_]{{0,40}}?)"
        rf"(?:(?:{_NAMES}){_SUFFIX}|token|auth|pat|secret)(?![\w-])[ \t]{{1,3}}(?![-$])",
        from_word=True,
        reads=True,
    ),
    # "token" alone more often means a token of a text than one of a service.
    Rule(
        "secret-value",
        ("token", "credential", "creds"),
        r"(?:token|creds?|credentials?)(?:(?<![a-z0-9]token)|(?<=\\[nrt]token))[\"'\\*]{0,3}\s{0,3}"
        rf"(?:{_TYPED}|[=:])(?=[ \t\"'`*\\]{{0,8}}[^\s\"'`*\\]{{12}})",
        from_word=True,
        reads=True,
    ),
    # curl -u name:password, smbclient -U name%password, sshpass -p password, mysql -ppassword
    Rule(
        "password-option",
        (" -u", "--user", "sshpass", " -p", " -a", " -w", "-pass", "chpasswd", "htpasswd", "/user:"),
        r" (?:-u {0,3}|--(?:proxy-)?user[ =])[\"']?(?:[^\s:/\"'%]{1,80}:([^\s/\"']{4,}+)"
        r"|[^\s:/\"'%]{1,80}%([^\s\"']{4,}+))"
        rf"|sshpass\s{{1,3}}-p\s{{0,3}}[\"']?({_VALUE}{{4,}}+)"
        rf"|\b(?:mysql|mariadb|7z)\w{{0,10}}(?=\s)[^\n]{{0,200}}? -p[\"']?({_VALUE}{{4,}}+)"
        rf"|\b(?:redis-cli(?=\s)[^\n]{{0,200}}? -a|ldap\w{{1,10}}(?=\s)[^\n]{{0,200}}? -w"
        rf"|(?:mosquitto_|mongo)\w{{1,10}}(?=\s)[^\n]{{0,200}}? -p|zip(?=\s)[^\n]{{0,60}}? -p"
        rf"|\slogin(?=\s)[^\n]{{0,200}}? -p)"
        rf"\s{{1,3}}[\"']?({_VALUE}{{6,}}+)"
        rf"|-pass(?:in|out)?\s{{1,3}}pass:([^\s\"']{{4,}}+)"
        rf"|\becho\s{{1,3}}(?:-n\s)?[\"']?[\w.-]{{1,40}}:([^\s\"']{{4,}}+)[\"']?\s?\|\s?(?:sudo )?chpasswd"
        rf"|\bhtpasswd\s{{1,3}}-\w{{0,6}}b\w{{0,6}}\s{{1,3}}\S{{1,80}}\s{{1,3}}\S{{1,80}}\s{{1,3}}[\"']?([^\s\"']{{4,}}+)"
        rf"|/user:\S{{1,80}}\s{{1,3}}([^\s/\"']{{6,}}+)",
        in_code=False,
    ),
    # .netrc, .pgpass, redis.conf
    Rule(
        "password-in-file",
        ("login", ":5432:", "requirepass", "masterauth", "auth-pass", "auth "),
        r"\blogin[ \t]{1,9}\S{1,80}[\s/,]{1,40}password:?\s{1,9}[\"']?([^\s\"']{5,}+)"
        r"|:5432:[^\s:]{1,80}:[^\s:]{1,80}:([^\s\"']{6,}+)"
        r"|(?:requirepass|masterauth|(?<=sentinel )auth-pass\s\S{1,40})\s{1,9}[\"']?([^\s\"']{4,}+)"
        r"|(?:^|\n|> ?)auth[ ]([^\s\"']{8,}+)(?=\s|$)",
        in_code=False,
        proof=Proof.SURE,
    ),
    Rule(
        "password-in-words",
        ("pass", "pw", "key", "token", "secret", "pin", *_FOREIGN_WORDS),
        rf"(?<![a-z])(?:pass(?:word|phrase|wort|code|wd)?|pw|(?:api|access|secret|private)[ -]?key|token|secret"
        rf"|(?<![a-z])pin(?:[ -]?code)?|{_FOREIGN})(?![a-z_]){_FOR}[*`\"]{{0,2}}{_IS}(?!\s{{0,3}}\n)\s{{0,3}}\*{{0,2}}",
        from_word=True,
        proof=Proof.SURE,
        reads=True,
    ),
    # use VALUE as the password, credentials: name / VALUE
    Rule(
        "password-in-words",
        ("as ", "als ", "comme", "como", "creds", "log in", "sign in", "credential", "login", "user", "zugangsdaten", "identifiants", "账号"),
        r"[\"'`“„«]?([^\s\"'`”“»]{6,80})[\"'`”“»]?\s(?:as|als|comme|como)\s(?:the |your |my |das |la |le |mot de |)"
        r"(?:\w{1,20} )?(?:passe|password|passwort|passphrase|api key|token|contraseña|secret|kennwort)\b"
        r"|\b(?:creds|credentials?|logins?|log in with|sign in with|user/pass(?:word)?|username/password|username and password"
        r"|zugangsdaten|identifiants|credenciales|账号密码)"
        r"(?:\sfor\s[\w.-]{1,30})?\s{0,2}(?:are|is|:|=|sind|：)?\s{0,3}[\"'`]?[\w.@+-]{2,60}[\"'`]?\s{0,3}[:/,|]\s{0,3}[\"'`]?([^\s\"'`,]{6,}+)",
        proof=Proof.WEAK,
    ),
    # CREATE USER name WITH PASSWORD 'value', IDENTIFIED BY 'value'
    Rule(
        "password-in-sql",
        ("password ", "identified "),
        r"(?:password|identified (?:by|with [a-z_0-9]{1,40} by))(?: as)? ['\"]([^'\"\n]{4,}+)['\"]",
        from_word=True,
        proof=Proof.SURE,
    ),
)
