"""The patterns of private keys, and of secrets that are recognised by what surrounds them."""

from collections.abc import Iterable, Iterator
from itertools import groupby
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
    :param needs: lowercase; every text with a match contains one of them. They are few and looked
        for before the words, to save time.
    """

    kind: str
    words: tuple[str, ...]
    pattern: str
    in_code: bool = True
    from_word: bool = False
    proof: Proof = Proof.WEAK
    reads: bool = False
    needs: tuple[str, ...] = ()


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
    " account ssh hmac crypt cipher unseal recovery certificate project server rest sdk integration"
    " function functions sas write personal user".split()
)
_TOKENS = (
    "api access auth refresh bearer session bot id csrf xsrf personal user admin root secret deploy"
    " ci github gitlab npm hf service bootstrap join registration runner oauth app vault push"
    " verification device reset sas security upload install".split()
)


def _by_length(words: Iterable[str]) -> Iterator[str]:
    """Yield a pattern for the words of each length: one assertion for many is compiled faster."""
    for _, group in groupby(sorted(set(words), key=lambda word: (len(word), word)), len):
        yield f"(?:{'|'.join(group)})"


def _last_word_pattern(words: list[str], last: str) -> str:
    """Return a pattern for the last word of names such as ``api_key``."""
    before = (f"(?<={word}{gap}{last})" for word in _by_length(words) for gap in ("", "[_ -]"))
    return f"{last}(?:{'|'.join(before)})"


#: Words for a password or key in other languages: what is looked for, and a pattern from there on.
_FOREIGN_NAMES = {
    "contrase": "contrase(?:ñ|n)y?a",
    "mdp": "mdp(?![a-z])",
    "senha": "senha",
    "clave": "clave(?![a-z])(?: de api| api| secreta)?",
    "clé": "clé (?:api|d.api|secrète|privée)",
    "parola": "parola(?: d.ordine)?",
    "wachtwoord": "wachtwoord",
    "kennwort": "kennwort",
    "zugangs": "zugangs(?:code|kennung|schlüssel)",
    "api": "api[ -](?:schlüssel|nyckel|sleutel|nøgle|klucz|klíč|ключ|anahtarı)",
    "lösenord": "lösenord(?:et)?",
    "adgangskode": "adgangskoden?",
    "salasana": "salasana",
    "hasło": "hasło",
    "heslo": "heslo",
    "jelszó": "jelszó",
    "şifre": "şifre(?:si|n|niz)?",
    "kata sandi": "kata sandi(?:nya)?",
    "mật khẩu": "mật khẩu",
    "парол": "парол(?:ь|я|ем)",
    "ключ api": "ключ api",
    "κωδικ": "κωδικός(?: πρόσβασης)?",
    **{
        word: word
        for word in (
            *("密码", "密碼", "口令", "密钥", "密鑰", "令牌", "パスワード", "비밀번호", "암호"),
            *("كلمة المرور", "كلمة السر", "סיסמה", "סיסמא", "รหัสผ่าน", "पासवर्ड", "पासकोड"),
        )
    },
}
_FOREIGN, _FOREIGN_WORDS = "|".join(_FOREIGN_NAMES.values()), tuple(_FOREIGN_NAMES)
#: Names of passwords, which leave no doubt, from the significant word on.
_PASSWORDS = (
    f"pass(?:word|wort|wd|phrase|code)|passe(?![a-z])|pwd|{_last_word_pattern(['db', 'database', 'key'], 'pass')}"  # noqa: E501
    f"|(?:pw|pass)(?![a-z])(?<![a-z0-9]pw)(?<![a-z0-9]pass)"
    f"|{_last_word_pattern(['root', 'bind', 'user', 'admin'], 'pw')}|psk(?![a-z])|{_FOREIGN}"
)
#: Names of variables that hold secrets, from the significant word on.
_NAMES = (
    f"{_last_word_pattern(_KEYS, 'key')}|{_last_word_pattern(_TOKENS, 'token')}"
    f"|key-data(?<=client-key-data)|secret(?<!existingsecret)(?<!existing_secret)(?<!\\d:secret)|{_PASSWORDS}"
)
#: Endings of names that hold something about a secret, not the secret itself.
_ABOUT_WORDS = (
    "id name path file url uri type hash length count field version label policy arn ref hint env "
    "prompt regex _at header algorithm _alg encryption method provider store manager backend "
    "scope source size limit expires expiry format class selector engine location dir endpoint "
    "host prefix suffix placeholder title description message error template _min _max updated "
    "changed created date ttl timeout rotation days strength score status attempts age lifetime "
    "rounds cost index".split()
)
_ABOUT = "".join(f"(?<!{endings})" for endings in _by_length(_ABOUT_WORDS))
_SUFFIX = rf"[a-z0-9_]{{0,40}}+(?:-base)?{_ABOUT}"
_NAME_WORDS = ("key", "pass", "pw", "secret", "token", "psk")
#: The end of a name in bold type: ``**Password:** value``.
_BOLD = r"\*{0,2}"
_VALUE = r"[^\s\"'`\\,;<>(){}\[\]]"
#: The ends of a table's cell in Markdown, possibly in bold type or as code.
_CELL_START, _CELL_END = r"[ \t]{0,40}[*`]{0,3}", r"[*`]{0,3}[ \t]{0,40}"
#: The type of a variable between its name and its value.
_TYPED = (
    r"(?:(?:\?|!)?\s?:\s?(?:&(?:'static )?)?[a-z][\w.<>\[\]| ]{0,30}?\s=(?!=)"
    r"|\s(?:string|\[\]byte)\s=)"
)
_SIGN = rf"(?:{_TYPED}|:=|=>|={{1,3}}|:|：|＝|->|→){_BOLD}"
_ENCODED_SIGN = r"(?:%22|%27){0,1}(?:%3a|%3d)(?:%20|\+)?"
#: name = value, "name": "value", name => value, <add key="name" value="value">, and a pair of lines
#: or attributes: name: NAME value: value.
_ASSIGNS = (
    rf"(?:[\]\"'`\\*)]{{0,4}}(?:\s{{0,3}}|[ \t]{{4,30}}){_SIGN}|{_ENCODED_SIGN}"
    rf"|[\"'\\,]{{0,4}}\s{{1,40}}[\"'\\]{{0,2}}value[\"'\\]{{0,2}}\s{{0,3}}[:=]\s{{0,3}}"
    rf"|[\"'`]\s{{0,3}},\s{{0,3}}(?=[\"'`])"
    # X || "value", os.getenv("X") or "value", variable "X" { default = "value" }
    rf"|[\"'\])]{{0,3}}\s{{0,2}}(?:\|\||\?\?|\sor)\s{{0,2}}(?=[\"'`])"
    rf"|\"\s\{{[^{{}}]{{0,200}}?\sdefault\s{{0,9}}=\s{{0,3}}(?=\"))"
)
#: Words between a name and its value in a sentence.
_FOR = (
    r"(?:\s?[(（][^()（）\n]{1,30}[)）]"
    r"|\s(?:for|of|on|at|für|von|vom|zum|zur|pour|de|du|des|del|do|da|della|dello|la|para|van|voor|per"
    r"|til|för|pro|od|od|для|от|к|на|untuk|cho)"
    r"(?:\s[\w.@'’/-]{1,30}){1,4}?"
    r"|\s(?:is|was|has been) (?:generated|created|set)(?: for [\w.@-]{1,40})?(?=:)"
    r"|\s(?:nova|nueva|neu|nuova|nouveau|temporal|temporaire|temporär)(?=\s?[:：]))?"
)
_IS = (
    r"(?:(?:['’]s|\s{1,3}(?:(?:is|was|will be|should be|has been|gets?)"
    r"(?: (?:now|set|changed|reset|updated) ?(?:to)?)?|set to|(?:changed|reset) (?:to|from)"
    r"|to|becomes|reads|ist|war|lautet|lautete|heißt|auf|est|était|es|este|esta|era|será|é|è|jest"
    r"|to jest|är|er|je|on|là|adalah|είναι|है|คือ))"
    r"(?:\s{1,3}(?:now|still|currently|jetzt|immer noch|leider|aktuell|ahora|maintenant))?"
    r"\s{0,3}[:：]?(?=[\s\"'`“„«])"
    r"|\s?(?:是|为|為|设为|改为|改成|就是|は|は、|를|는|은)\s?[:：]?|\s{0,2}[:：]|\s{1,3}[-–—]\s)"
)

#: Secrets recognised by what surrounds them; the value may be a placeholder or a name. The patterns
#: match lowercased text.
GUESSES = (
    Rule(
        "password-in-url",
        ("://",),
        # A password may contain an @: it ends at the last one before the host. It is no port.
        r"://[^\s:/?#@\"'`<>\\]{0,200}:(?!\d{1,5}(?:[/?#]|$))"
        r"(@?[^\s@\"'`<>\\]{1,400}(?:@[^\s/?#@\"'`<>\\]{0,200}){0,9})@[^\s/@]",
        in_code=False,
        proof=Proof.CERTAIN,
    ),
    # name/VALUE@//host, thin:name/VALUE@host, name:VALUE@tcp(host)
    Rule(
        "password-in-url",
        ("@//", "oracle:thin:", "sqlplus ", "@tcp(", "@unix("),
        r"(?:(?<![\w/])\w{1,30}/([^\s/@\"']{4,80})@//|(?:oracle:thin:|sqlplus\s(?:-\w\s)?)\w{1,30}/"
        r"([^\s/@\"']{4,80})@|(?<![\w/:])[\w.-]{1,40}:([^\s@\"'`]{4,200})@(?:tcp|unix)\()",
        in_code=False,
        proof=Proof.SURE,
        needs=("@",),
    ),
    Rule(
        "url-parameter",
        ("?", "&"),
        r"[?&](?:sig|signature|x-amz-signature|x-amz-security-token|appid|(?:api_?)?key|auth"
        r"|subscription-key|code)=([\w%+/.~-]{20,}+)",
        in_code=False,
        needs=("=",),
    ),
    Rule(
        "authorization",
        ("auth",),
        r"authorization[\"'\\\]]{0,4}\s{0,3}[:=,]\s{0,3}[\"'`\\f]{0,4}(?:bearer|basic|token|apikey"
        r"|api-key|key|bot|digest|ssws|negotiate|splunk|genie ?key|aws)?[\s:=]{0,3}"
        r"([a-z0-9._~+/=-]{12,}+)",
    ),
    Rule(
        "authorization",
        ("bearer ",),
        r"(?<![a-z0-9])bearer\s{1,3}([a-z0-9._~+/=-]{16,}+)",
        from_word=True,
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
        ('"d"',),
        r"\"d\"\s?:\s?\"([\w-]{40,}+)\"",
        from_word=True,
    ),
    Rule(
        "session-cookie",
        ("sess", "sid=", "auth"),
        r"(?:sess(?:ion)?(?:[_-]?(?:token|id|key))?|sid|auth_?(?:token|cookie))"
        r"=(?=[\w%.~+/:-]{0,60}\d)([\w%.~+/:=-]{16,}+)",
        from_word=True,
        needs=("=",),
    ),
    # A row of a table: | name | value |, and an element: <name>value</name>
    Rule(
        "secret-value",
        _NAME_WORDS,
        rf"(?:{_NAMES}){_SUFFIX}(?:>([^\s<]{{6,}}+)</|:?</t[dh]>\s{{0,9}}<td[^>]{{0,40}}>([^\s<]{{6,}}+)<"
        rf"|{_CELL_END}\|{_CELL_START}([^\s|`*\"'\\,;<>(){{}}\[\]]{{6,}}+){_CELL_END}\|)",
        from_word=True,
        proof=Proof.SURE,
        needs=("</", "|"),
    ),
    Rule(
        "secret-value",
        (*_NAME_WORDS, *_FOREIGN_WORDS),
        rf"(?:{_NAMES}){_SUFFIX}{_ASSIGNS}",
        from_word=True,
        proof=Proof.SURE,
        reads=True,
    ),
    # ENV NAME value, setenv NAME value, --name value
    Rule(
        "secret-value",
        ("--", "env ", "setx "),
        rf"(?:--(?=[a-z])(?<![\w-]--)[a-z0-9-]{{0,30}}?|(?:env|setx) (?=[a-z])[a-z0-9_]{{0,40}}?)"
        rf"(?:(?:{_NAMES}){_SUFFIX}|token|auth|pat|secret)(?![\w-])[ \t]{{1,3}}(?![-$])",
        from_word=True,
        needs=(*_NAME_WORDS, *_FOREIGN_WORDS, "auth"),
        reads=True,
    ),
    # "token" alone more often means a token of a text than one of a service.
    Rule(
        "secret-value",
        ("token", "cred"),
        r"(?:token|cred(?:s|entials?)?)(?:(?<![a-z0-9]token)|(?<=\\[nrt]token))[\"'\\*]{0,3}\s{0,3}"
        rf"(?:{_TYPED}|[=:])(?=[ \t\"'`*\\]{{0,8}}[^\s\"'`*\\]{{12}})",
        from_word=True,
        reads=True,
    ),
    # curl -u name:password, smbclient -U name%password, sshpass -p password
    Rule(
        "password-option",
        (" -u", "--user", "--proxy-user", "sshpass", "-pass", "htpasswd", "/user:"),
        r"(?:(?: -u {0,3}|--(?:proxy-)?user[ =])[\"']?[^\s:/\"'%]{1,80}(?::([^\s/\"']{4,}+)"
        r"|%([^\s\"']{4,}+))"
        rf"|sshpass\s{{1,3}}-p\s{{0,3}}[\"']?({_VALUE}{{4,}}+)"
        r"|-pass(?:in|out)?\s{1,3}pass:([^\s\"']{4,}+)"
        r"|htpasswd\s{1,3}-\w{0,6}b\w{0,6}\s{1,3}\S{1,80}\s{1,3}\S{1,80}\s{1,3}[\"']?"
        r"([^\s\"']{4,}+)|/user:\S{1,80}\s{1,3}([^\s/\"']{6,}+))",
        in_code=False,
        from_word=True,
    ),
    # echo VALUE | sudo -S, echo name:VALUE | chpasswd
    Rule(
        "password-option",
        ("echo ",),
        r"echo\s{1,3}(?:-n\s)?[\"']?(?:[\w.-]{1,40}:([^\s\"']{4,}+)[\"']?\s?\|\s?(?:sudo )?chpasswd"
        r"|([^\s\"':]{6,80})[\"']?\s?\|\s?(?:sudo -s|[^\n|]{1,80}(?:-stdin|--with-token)))",
        in_code=False,
        from_word=True,
        needs=("|",),
    ),
    # rdesktop /p:VALUE, keytool -storepass VALUE, ConvertTo-SecureString "VALUE"
    Rule(
        "password-option",
        (" /p:", "-storepass", "-keypass"),
        r"(?: /p:[\"']?([^\s\"']{4,}+)|-(?:store|key)pass\s{1,3}[\"']?([^\s\"']{4,}+))",
        in_code=False,
        from_word=True,
        proof=Proof.SURE,
    ),
    Rule(
        "password-option",
        ("securestring",),
        r"securestring\s{1,3}(?:-string\s)?[\"']([^\"'\n]{4,200})[\"']",
        from_word=True,
        proof=Proof.SURE,
        needs=(" -asplain",),
    ),
    # connection.login("name", "VALUE"), user.setPassword("VALUE")
    Rule(
        "password-in-call",
        (".login(", "networkcredential(", "basicauth(", "basiccredential(", "setpassword("),
        r"(?:(?:\.login|networkcredential|basicauth|basiccredential)\(\s{0,9}[\"'][^\"'\n]{1,80}[\"']\s{0,3},"
        r"\s{0,9}[\"']([^\"'\n]{4,200})[\"']|setpassword\(\s{0,3}[\"']([^\"'\n]{4,200})[\"']\s{0,3}\))",
        from_word=True,
        proof=Proof.SURE,
    ),
    # mysql -ppassword, redis-cli -a password
    Rule(
        "password-option",
        (
            *(
                "mysql",
                "mariadb",
                "7z",
                "redis-cli",
                "ldap",
                "mosquitto_",
                "mongo",
                "zip ",
                " login",
            ),
            *("sqlcmd", "ipmitool", "snmp"),
        ),
        rf"(?:(?:mysql|mariadb|7z)\w{{0,10}}(?=\s)[^\n]{{0,200}}? -p[\"']?({_VALUE}{{4,}}+)"
        r"|(?:redis-cli(?=\s)[^\n]{0,200}? -a|ldap\w{1,10}(?=\s)[^\n]{0,200}? -w"
        r"|snmp\w{1,10}(?=\s)[^\n]{0,200}? -[ax]|(?:sqlcmd|ipmitool)(?=\s)[^\n]{0,200}? -p"
        r"|(?:mosquitto_|mongo)\w{1,10}(?=\s)[^\n]{0,200}? -p|zip(?=\s)[^\n]{0,60}? -p"
        rf"| login(?=\s)[^\n]{{0,200}}? -p)\s{{1,3}}[\"']?({_VALUE}{{6,}}+))",
        in_code=False,
        from_word=True,
        needs=(" -p", " -a", " -w"),
    ),
    # .netrc, .pgpass, redis.conf
    Rule(
        "password-in-file",
        ("login", ":543", ":*:", "requirepass", "masterauth", "auth-pass", "bindpw", "wpa-psk"),
        r"\blogin[ \t]{1,9}\S{1,80}[\s/,]{1,40}password:?\s{1,9}[\"']?([^\s\"']{5,}+)"
        r"|:(?:543\d|\*):[^\s:]{1,80}:[^\s:]{1,80}:([^\s\"']{6,}+)"
        r"|(?:requirepass|masterauth|bindpw|wpa-psk|(?<=sentinel )auth-pass\s\S{1,40})\s{1,9}[\"']?([^\s\"']{4,}+)",  # noqa: E501
        needs=("pass", "masterauth", ":543", ":*:", "bindpw", "wpa-psk"),
        in_code=False,
        from_word=True,
        proof=Proof.SURE,
    ),
    Rule(
        "password-in-words",
        ("pass", "pw", "key", "token", "secret", *_FOREIGN_WORDS),
        rf"(?<![a-z])(?:pass(?:word|phrase|wort|code|wd|e)?|pw|key(?:(?<=(?:api|ret|ess|ate)[ -]key)|(?<=my key))|token|secret(?<!\d:secret)"  # noqa: E501
        rf"|{_FOREIGN})(?![a-z_]){_FOR}[*`\"]{{0,2}}{_IS}(?!\s{{0,3}}\n)\s{{0,3}}\*{{0,2}}",
        from_word=True,
        proof=Proof.SURE,
        reads=True,
    ),
    Rule(
        "password-in-words",
        ("pin",),
        rf"(?<![a-z])pin(?:[ -]?code)?(?![a-z_]){_FOR}[*`\"]{{0,2}}{_IS}"
        r"\s{0,3}[*`\"']{0,3}(\d{4,12})(?!\w)",
        from_word=True,
    ),
    # use VALUE as the password
    Rule(
        "password-in-words",
        ("use ", "using ", "with ", "set ", "nimm ", "utilise ", "usa "),
        r"(?:use|using|with|set|nimm|utilise|usa)\s[\"'`“„«]?([^\s\"'`”“»]{6,80})[\"'`”“»]?\s"
        r"(?:as|als|comme|como)\s(?:the |your |my |das |la |le |mot de )?(?:\w{1,20} )?"
        r"(?:passe|password|passwort|passphrase|passcode)\b",
        from_word=True,
        needs=("passe", "password", "passwort", "passphrase", "passcode"),
    ),
    # credentials: name / VALUE
    Rule(
        "password-in-words",
        (
            "cred",
            "login",
            " in with ",
            "username/pass",
            "username and pass",
            "zugangsdaten",
            "identifiants",
            "账号密码",
        ),
        r"(?:creds|credentials?|logins?| in with|username/password|username and password|zugangsdaten|identifiants|credenciales|账号密码)"  # noqa: E501
        r"(?:\sfor\s[\w.-]{1,30})?\s{0,2}(?:are|is|:|=|sind|：)?\s{0,3}[\"'`]?[\w.@+-]{2,60}[\"'`]?"
        r"\s{0,3}[:/,|]\s{0,3}[\"'`]?([^\s\"'`,]{6,}+)",
        from_word=True,
    ),
    # CREATE USER name WITH PASSWORD 'value', IDENTIFIED BY 'value'
    Rule(
        "password-in-sql",
        ("password ", "identified "),
        r"(?:password|identified (?:by|with [a-z_0-9]{1,40} by))(?: as)? ['\"]([^'\"\n]{4,}+)['\"]",
        from_word=True,
        needs=(" '", ' "'),
        proof=Proof.SURE,
    ),
    # with password VALUE, and a value on a line of its own
    Rule(
        "password-in-words",
        ("pass", "pw", "key", "token", *_FOREIGN_WORDS),
        rf"(?<![a-z])(?:pass(?:word|phrase|wort|code|wd|e)|pw|token(?:(?<=this token)"
        rf"|(?<=my token))|key(?:(?<=(?:this|.api) key)|(?<=my key))|{_FOREIGN})(?![a-z_-])"
        r"(?::?\s{1,4}|\s\d\s)[\"'`“„«]?([^\s\"'`“”„«»,;<>(){}\[\]]{8,80})",
        from_word=True,
        proof=Proof.HINT,
    ),
)
