"""The patterns of private keys, and of secrets that are recognised by what surrounds them."""

import re
from typing import NamedTuple

from reservoir_cli.redaction.false_alarms import Proof
from reservoir_cli.redaction.names_of_secrets import (
    CALLS_WITH_NAME,
    FOR,
    FOREIGN,
    FOREIGN_WORDS,
    IS,
    NAME_WORDS,
    NAMES,
    NO_SECRET_KEYS,
    SERVICES,
    SUFFIX,
    USERS,
)


class Rule(NamedTuple):
    """A rule that detects secrets by their surroundings."""

    kind: str
    words: tuple[str, ...]  #: Lowercase; every match contains one: other texts are not searched.
    pattern: str  #: The secret is the group that matched; without groups, the whole match.
    in_code: bool = True  #: The value may also be the name of a variable or a resource.
    from_word: bool = True  #: Every match begins with one of the words.
    proof: Proof = Proof.SURE
    reads: bool = False  #: The secret is the value that follows the match.
    #: Lowercase; every match needs one. They are few, and sought first.
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
        ("static key",),
        r"-----BEGIN OpenVPN Static key V\d-----[0-9a-f\s\\nr]{32,2000}+",
    ),
    Rule(
        "private-key",
        ("putty-user-key-file-", "private-lines:"),
        r"PuTTY-User-Key-File-\d: (?:[^P]|P(?!uTTY-User)){20,100000}?Private-MAC: [0-9a-f]{1,128}"
        r"|Private-Lines: \d{1,4}(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{20,128}+){1,200}+",
    ),
)

_LITERAL = r"[\"'][^\"'\n]{1,120}[\"']\s{0,3}"  #: A text between quotes, as an argument of a call.
_VALUE = r"[^\s\"'`\\;<>()]"
#: An argument between quotes, which may have blanks, or else a word.
_ARGUMENT = rf"(?:\"((?:[^\"\\\n]|\\.){{4,80}}+)\"|'([^'\n]{{4,80}}+)'|[\"']?({_VALUE}{{%d,}}+))"
#: The ends of a table's cell in Markdown, possibly in bold type or as code.
_CELL_START, _CELL_END = r"[ \t]{0,40}[*`]{0,3}", r"[*`]{0,3}[ \t]{0,40}"
#: The type of a variable between its name and its value.
_TYPED = (
    r"(?:(?:\?|!)?\s?:\s?(?:&(?:'static )?)?[a-z\[][\w.<>\[\]| ]{0,30}?\s=(?!=)"
    r"|\s(?:string|\[\]byte)\s=|\sas [a-z.]{1,20}\s=)"
)
_LINE_END = r"(?=[ \t]{0,9}(?:[\r\n]|$))"
#: A line that announces a password, up to the line below it.
_BELOW = (
    rf"(?:pass(?:word|wort|phrase|code)|{FOREIGN})(?![a-z_])[^\n]{{0,80}}?[:：]"
    r"[ \t]{0,9}(?:\r?\n[ \t]{0,20}){1,2}"
)
_SIGN = rf"(?:{_TYPED}|:=|=>|={{1,3}}|<<<|:|：|＝|->|→)\*{{0,2}}"
_ENCODED_SIGN = r"(?:%22|%27){0,1}(?:%3a|%3d)(?:%20|\+)?"
#: name = value, **name:** value, "name": "value", name => value, <add key="name" value="value">,
#: and a pair of lines or attributes: name: NAME value: value.
_ASSIGNS = (
    rf"(?:[\]\"'`\\*)]{{0,4}}(?:\s{{0,3}}|[ \t]{{4,30}}){_SIGN}|{_ENCODED_SIGN}"
    rf"|[\"'\\,]{{0,4}}\s{{0,40}}[\"'\\]{{0,2}}(?:parameter|default)?value[\"'\\]{{0,2}}\s{{0,3}}[:=]\s{{0,3}}"
    rf"|[\"'`]\s{{0,3}},\s{{0,3}}(?=[\"'`])"
    # X || "value", os.getenv("X") or "value", variable "X" { default = "value" }
    rf"|[\"'\])?]{{0,4}}\s{{0,2}}(?:\|\||\?\?|\sor)\s{{0,2}}(?=[\"'`])"
    rf"|\"\s\{{(?:[^{{}}]|\{{[^{{}}]{{0,80}}\}}){{0,200}}?\sdefault\s{{0,9}}=\s{{0,3}}(?=\")"
    # X { get; set; } = "value", fetch("X") { "value" }, X{"value"}
    rf"|\{{(?=\")|\s?\{{[^{{}}\n\"']{{1,40}}\}}\s?=(?=\s?[\"'])|[\"']\)\s?\{{\s{{0,3}}(?=[\"']))"
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
        from_word=False,
    ),
    # name:'VALUE'@host
    Rule(
        "password-in-url",
        (":'", ':"'),
        r"(?<=[\w.-]):(?:'([^'\n]{4,80}+)'|\"([^\"\n]{4,80}+)\")@[a-z0-9\[$]",
        in_code=False,
        proof=Proof.CERTAIN,
        needs=("'@", '"@'),
    ),
    Rule(  # https://VALUE@host
        "password-in-url",
        ("://",),
        r"://([^\s:/?#@\"'`<>\\]{20,200}+)@(?![\w.-]{0,60}sentry)[a-z0-9]",
        in_code=False,
        proof=Proof.HINT,
        needs=("@",),
    ),
    # name/VALUE@//host, thin:name/VALUE@host, name:VALUE@tcp(host)
    Rule(
        "password-in-url",
        ("@//", "oracle:thin:", "@tcp(", "@unix("),
        r"(?:(?<![\w/])\w{1,30}/([^\s/@\"']{4,80})@//|oracle:thin:\w{1,30}/"
        r"([^\s/@\"']{4,80})@|(?<![\w/:])[\w.-]{1,40}:([^\s@\"'`]{4,200})@(?:tcp|unix)\()",
        in_code=False,
        needs=("@",),
        from_word=False,
    ),
    Rule(
        "url-parameter",
        ("?", "&", "#"),
        r"[?&#](?:sig|signature|x-amz-signature|x-amz-security-token|appid|(?:api_?)?key|auth"
        r"|subscription-key|code)=([\w%+/.~-]{20,}+)",
        in_code=False,
        needs=("=",),
        from_word=False,
        proof=Proof.WEAK,
    ),
    Rule(
        "authorization",
        ("auth",),
        r"authorization(?:[\"'\\\]]{0,4}\s{0,3}[:=,]\s{0,3}[\"'`\\f]{0,4}|\s[\"'](?=[a-z]{5,6}\s))(?:bearer|basic|token|apikey"
        r"|api-key|key|bot|digest|ssws|negotiate|splunk|genie ?key|aws)?[\s:=]{0,3}"
        r"([a-z0-9._~+/=-]{12,}+)",
        from_word=False,
    ),
    Rule(
        "authorization",
        ("bearer", "ssws"),
        r"(?<![a-z0-9])(?:bearer|ssws)[\s\"',+]{1,6}([a-z0-9._~+/=-]{16,}+)",
        proof=Proof.WEAK,
    ),
    # Docker's settings, npm's settings, and arguments of HTTP clients
    Rule(
        "authorization",
        ("auth",),
        r"auth(?:\\?\"\s{0,3}:\s{0,3}\\?\"([a-z0-9+/]{16,}+={0,2})\\?\""
        r"|(?:(?<=_auth)[ \t]{0,3}[= ]|\s(?:plain|login)\s)[ \t]{0,3}\"?([a-z0-9+/]{12,}+={0,2})"
        r"|\s{0,3}=?\s{0,3}\(\s{0,3}[\"'][^\s\"']{1,80}[\"']\s{0,3},\s{0,3}"
        r"[\"']([^\s\"']{6,}+)[\"']\s{0,3}\))",
    ),
    Rule(
        "aws-secret-key",
        ("aws", "akia", "asia"),
        r"(?<![\w/+=.-])(?![0-9a-f]{40})[0-9a-z/+]{40}(?![\w/+=.-])",
        in_code=False,
        proof=Proof.HINT,
        from_word=False,
    ),
    Rule(
        "vault-secret-id",
        ("secret_id",),
        r"secret_id[\"'\\:=\s]{1,40}([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})",
        in_code=False,
        proof=Proof.WEAK,
    ),
    Rule("private-key", ('"d"',), r"\"d\"\s?:\s?\"([\w-]{40,}+)\"", proof=Proof.WEAK),
    Rule(
        "session-cookie",
        ("sess", "sid=", "auth", "aspxauth", "remember", "jwt=", "li_at="),
        r"(?:sess(?:ion)?(?:[_-]?(?:token|id|key))?|sid|auth_?(?:token|cookie)|aspxauth|jwt|li_at"
        r"|remember(?:_\w{2,60}?)?)(?:=|\\?\"\s?,\s{0,40}\\?\"value\\?\"\s?:\s?\\?\")"
        r"(?=[\w%.~+/:-]{0,60}\d)([\w%.~+/:=-]{16,}+)",
        needs=("=", "value"),
        proof=Proof.WEAK,
    ),
    # A row of a table: | name | value |, an element: <name>value</name>, and two of them, one after
    # the other: <td>name</td> <td>value</td>, <key>name</key> <string>value</string>
    Rule(
        "secret-value",
        NAME_WORDS,
        rf"(?:{NAMES}){SUFFIX}(?:[\"']?(?:\s[^<>\n]{{1,80}})?>(?:\s{{0,40}}<value>)?"
        rf"([^\s<][^\n<]{{5,200}}+)</|:?</\w{{1,20}}>\s{{0,40}}"
        rf"<\w{{1,20}}[^>\n]{{0,40}}>([^\s<]{{6,}}+)<"
        rf"|{_CELL_END}\|{_CELL_START}([^\s|`*\"'\\,;<>(){{}}\[\]]{{6,}}+){_CELL_END}\|)",
        needs=("</", "|"),
    ),
    Rule(
        "secret-value",
        (*NAME_WORDS, *FOREIGN_WORDS),
        rf"(?:{NAMES}){SUFFIX}(?: #?\d{{1,2}})?{_ASSIGNS}",
        reads=True,
    ),
    # ENV NAME value, setenv NAME value, #define NAME "value", --name value
    Rule(
        "secret-value",
        ("--", "env ", "setx ", "set -", "#define "),
        rf"(?:--(?=[a-z])(?<![\w-]--)[a-z0-9-]{{0,30}}?"
        rf"|(?:env|setx|set(?: --?[a-z]{{1,9}}){{1,3}}|#define) (?=[a-z])[a-z0-9_]{{0,40}}?)"
        rf"(?:(?:{NAMES}){SUFFIX}|token|auth|pat|secret)(?![\w-])[ \t]{{1,20}}(?![-$])",
        needs=(*NAME_WORDS, *FOREIGN_WORDS, "auth"),
        reads=True,
    ),
    # "token" alone more often means a token of a text than one of a service.
    Rule(
        "secret-value",
        ("token", "cred"),
        r"(?:token|cred(?:s|entials?)?)(?:(?<![a-z0-9]token)|(?<=\\[nrt]token))[\"'\\*]{0,3}\s{0,3}"
        rf"(?:{_TYPED}|[=:])(?=[ \t(\"'`*\\]{{0,8}}[^\s\"'`\\]{{12}})",
        reads=True,
        proof=Proof.WEAK,
    ),
    # "value": "VALUE", "name": "NAME"
    Rule(
        "secret-value",
        ("value",),
        r"value\\?[\"']?\s{0,3}[:=]\s{0,3}(?:\\?[\"']([^\"'\\\n]{6,200}+)\\?[\"']|([^\s\"'\\,]{6,200}+))"
        r"[\s,]{1,20}(?:\\?[\"']?[a-z]{1,20}\\?[\"']?\s?[:=]\s?[^\s,]{1,40},?\s{1,20}){0,2}?"
        r"\\?[\"']?(?:parameter)?(?:name|key)\\?[\"']?\s?[:=]\s?\\?[\"']?(?=[a-z])[a-z0-9_.-]{0,60}?"
        rf"(?:{NAMES}){SUFFIX}(?![\w-])",
        needs=NAME_WORDS,
    ),
    # curl -u name:password, smbclient -U name%password
    Rule(
        "password-option",
        (
            *(" -u", "--user", "--proxy-user", " -auth", "sshpass", "-pass", "htpasswd", "/user:"),
            *(" /p:", "-storepass", "-keypass", "securestring", "curl -", "http -"),
        ),
        r"(?:(?: -u {0,3}|--(?:proxy-)?user[ =]| -auth "
        r"|curl(?: --?[a-z#-]{1,20}){0,5}? -[a-z#]{1,9}?u {0,3}"
        r"|(?<![\w/])https?(?: --?[\w=-]{1,20}){0,4}? -a {0,3})"
        r"(?:\"[^\s:\"'%]{1,80}:((?:[^\"\\\n]|\\.){4,80}+)\"|'[^\s:\"'%]{1,80}:([^'\n]{4,80}+)'"
        r"|[\"']?[^\s:\"'%]{1,80}(?::[\"']?([^\s/\"']{4,}+)|%([^\s\"']{4,}+)))"
        # any command -u name -p VALUE, but not a port
        r"|(?: -u {0,3}|--user(?:name)?[ =])[\w.@\\+-]{1,80}\s{1,3}(?:-p|-w)\s{1,3}"
        rf"(?!\S{{0,40}}:\d){_ARGUMENT % 6}|sshpass\s{{1,3}}-p\s{{0,3}}{_ARGUMENT % 4}"
        r"|-pass(?:in|out)?\s{1,3}[\"']?pass:[\"']?([^\s\"']{4,}+)"
        r"|htpasswd\s{1,3}-\w{0,6}b\w{0,6}\s{1,3}\S{1,80}\s{1,3}\S{1,80}\s{1,3}[\"']?"
        r"([^\s\"']{4,}+)|/user:\S{1,80}\s{1,3}([^\s/\"']{6,}+)"
        r"|(?: /p:|-(?:store|key)pass\s{1,3})[\"']?([^\s\"']{4,}+)"
        # ConvertTo-SecureString "VALUE"
        r"|securestring\s{1,3}(?:-string\s)?[\"']([^\"'\n]{4,200})[\"'] -asplain)",
        in_code=False,
    ),
    # echo VALUE | sudo -S, echo name:VALUE | chpasswd, echo VALUE > .vault_pass
    Rule(
        "password-option",
        ("echo ",),
        r"echo\s{1,3}(?:-[ne]{1,2}\s)?[\"']?(?:[\w.-]{1,40}:([^\s\"']{4,}+)[\"']?\s?\|"
        r"\s?(?:sudo )?chpasswd|([^\s\"':]{6,80})[\"']?\s?\|\s?(?:sudo -s|(?:sudo )?\w{0,3}passwd"
        r"|cryptsetup|[^\n|]{1,80}(?:-stdin|--with-token))"
        r"|[\"']?([^\s\"':]{6,80})[\"']?\s?>\s?[\w./~-]{0,60}?(?:pass|pw|secret|token|key)"
        r"|(?<=(?:key|ile|ass|ord|ret|ken)[ =]<\(echo )[\"']?([^\s\"':)]{6,80}))",
        in_code=False,
        needs=("|", "<(", ">"),
    ),
    # connection.login("name", "VALUE"), connect("source", "name", "VALUE")
    Rule(
        "password-in-call",
        (
            *CALLS_WITH_NAME,
            *("connect(", "connection(", "pdo(", "client(", "client.new(", "client.create("),
        ),
        rf"(?:(?:{'|'.join(map(re.escape, CALLS_WITH_NAME))})\s{{0,9}}{_LITERAL},"
        rf"|(?:connect(?:ion)?|pdo)\(\s{{0,9}}(?:{_LITERAL}|[\w.$]{{1,60}}),\s{{0,9}}(?:\d{{1,5}},\s{{0,9}})?"
        rf"{_LITERAL},\s{{0,9}}(?:\d{{1,5}},\s{{0,9}})?"
        rf"|client(?:\.new|\.create)?\(\s{{0,9}}{_LITERAL},(?=\s{{0,9}}[\"'][^\s\"']{{20}}))"
        r"\s{0,9}[\"']([^\"'\n]{4,200})[\"']",
        in_code=False,
    ),
    # kubectl create secret generic NAME --from-literal=any=VALUE
    Rule(
        "secret-value",
        ("--from-literal",),
        r"--from-literal[= ][\"']?[\w.-]{1,80}=[\"']?([^\s\"']{6,200})",
        in_code=False,
        proof=Proof.HINT,
        needs=("create secret",),
    ),
    # builder.with_api_key("VALUE"), user.setPassword("VALUE"), jwt.sign(claims, "VALUE")
    Rule(
        "password-in-call",
        (
            *(".set", ".with", ".api", ".pass", ".secret", ".token", ".auth", ".access", ".client"),
            *("setpass", "setsecret", "setapi", "wallet(", "accounts:", "value(", "fernet("),
            *("jwt.sign(", "jwt.verify(", "jwt.encode(", "jwt.decode(", "secretstring", "client("),
            *("password(", "plaintext("),
        ),
        rf"\.?(?=[a-z])(?:set|with)?[a-z_]{{0,20}}?(?:{NAMES}|token|plaintext)"
        r"(?:string::(?:from|new))?\(\s{0,9}[\"']([^\"'\n]{6,200})[\"']\s{0,9}\)"
        r"|client\(\s{0,9}[\"']([\w-]{32,200})[\"']\s{0,9}\)"
        # Wallet("VALUE"), accounts: ["VALUE"], setValue("VALUE", forHTTPHeaderField: "X-Api-Key")
        r"|(?:wallet\(|accounts:\s?\[)\s{0,9}[\"']((?:0x)?[0-9a-f]{64})[\"']"
        r"|fernet\(b?[\"']([\w=+/-]{32,}+)[\"']"
        r"|jwt\.(?:sign|verify|encode|decode)\(\s{0,9}(?:[\w.]{1,40}|\{[^{}]{0,200}\})\s?,\s{0,9}"
        r"b?[\"'`]([^\"'`\n]{6,200})[\"'`]"
        r"|value\(\"([^\"\n]{12,200})\", forhttpheaderfield: \"(?:[\w-]{0,30}(?:key|token|secret))",
        needs=('("', "('", '["', "['", "jwt.", "fernet("),
    ),
    # Any other name of a key, with a value that nothing but a key looks like.
    Rule(
        "secret-value",
        ("_key", "-key", "_auth", "_pat"),
        rf"[_-](?:key|auth|pat)(?![a-z]){NO_SECRET_KEYS}{_ASSIGNS}"
        r"(?=[ \t\"'`\\]{0,4}[^\s\"'`/]{16})",
        proof=Proof.HINT,
        reads=True,
    ),
    # proxy_set_header X-Api-Key "VALUE", export NAME VALUE
    Rule(
        "secret-value",
        NAME_WORDS,
        rf"(?:{NAMES}){SUFFIX}(?:(?<=[ _-][a-z]{{3}})|(?<=[ _-][a-z]{{5}})|(?<=[ _-]secret))"
        r"[ \t]{1,9}(?=[\"']?[^\s\"']{16})",
        proof=Proof.HINT,
        reads=True,
    ),
    # A part of a form: name="NAME", an empty line, and the value; and ?u=NAME&p=VALUE
    Rule(
        "secret-value",
        NAME_WORDS,
        rf"(?:{NAMES}){SUFFIX}\]?\"?\r?\n(?:content-type: [^\n]{{1,80}}\n)?"
        r"\r?\n([^\s\"']{6,200}+)",
        in_code=False,
        needs=("form-data",),
    ),
    Rule(
        "url-parameter",
        ("?u", "&u"),
        r"[?&]u(?:ser|sername)?=[\w.@%+-]{1,60}&p(?:w|wd|ass)?=([^\s&\"'#]{6,200}+)",
        in_code=False,
        needs=("&p",),
    ),
    # A command that stores a secret: secret set NAME --body VALUE
    Rule(
        "password-option",
        ("secret set ", "secrets set "),
        rf"secrets? set [^\n]{{0,120}}? (?:--body|--value|-b)[ =]{{1,3}}{_ARGUMENT % 6}",
        in_code=False,
    ),
    # At the prompt of a client: user NAME VALUE, auth NAME VALUE; and as the last argument
    Rule(
        "password-option",
        ("> user ", "> auth ", "mysqladmin ", "security add-"),
        r"(?:> (?:user|auth) [\w.@-]{1,60}|mysqladmin [^\n]{0,80}?(?<= )password"
        r"|security add-\w{1,20}-password [^\n]{0,200}? -w)"
        rf" [\"']?([^\s\"'-][^\s\"']{{5,200}}+)[\"']?{_LINE_END}",
        in_code=False,
    ),
    # A value alone on the line below a sentence about a password, and one that a tool has set
    Rule(
        "password-in-words",
        ("password", "passwort", "passphrase", "passcode", *FOREIGN_WORDS),
        rf"{_BELOW}([^\s\"']{{8,128}}+){_LINE_END}",
        in_code=False,
        proof=Proof.HINT,
        needs=(":\n", ": \n", ":\r", "：\n"),
    ),
    Rule(  # the same with joined words
        "password-in-words",
        ("password", "passwort", "passphrase", "passcode", *FOREIGN_WORDS),
        rf"{_BELOW}([a-z]{{14,40}}+|[a-z]{{3,12}}(?:-[a-z]{{3,12}}){{2,6}}){_LINE_END}",
        in_code=False,
        needs=(":\n", ": \n", ":\r", "：\n"),
    ),
    Rule(
        "password-in-words",
        ("new value: ",),
        rf"new value: {{1,3}}([^\s\"']{{6,128}}+){_LINE_END}",
        needs=("password", "passwort"),
    ),
    # mysql -ppassword, redis-cli -a password
    Rule(
        "password-option",
        (
            *("mysql", "mariadb", "7z", "redis-cli", "ldap", "mosquitto_", "mongo", "zip "),
            *(" login", "sqlcmd", "ipmitool", "snmp", "bcp", "tsql", "psexec", "evil-winrm"),
            *("crackmapexec", "nxc ", "ssh-keygen", "kadmin", "rabbitmqctl", "net use", "lftp "),
            *("bw unlock", "wpa_passphrase ", "rclone obscure", "openssl passwd", "mkpasswd"),
            *("rar ", "sqlplus ", "expdp ", "impdp ", "sqlldr ", "openssl enc ", " auth ", "mc "),
        ),
        rf"(?:(?:mysql|mariadb|7z|rar)\w{{0,10}}(?=\s)[^\n]{{0,200}}? -p{_ARGUMENT % 4}"
        r"|(?:redis-cli(?=\s)[^\n]{0,200}? -a|ldap\w{1,10}(?=\s)[^\n]{0,200}? -w"
        r"|snmp\w{1,10}(?=\s)[^\n]{0,200}? -[axc]|ssh-keygen(?=\s)[^\n]{0,200}? -[np]"
        r"|(?:sqlcmd|ipmitool|bcp|tsql|psexec|evil-winrm|crackmapexec|nxc)(?=\s)[^\n]{0,200}? -p"
        r"|kadmin(?=\s)[^\n]{0,200}? -w|openssl enc(?=\s)[^\n]{0,200}? -k"
        r"|mc (?:alias set|config host add) \S{1,40} \S{1,120} \S{1,80}"
        r"|lftp [^\n]{0,60}?-u [\w.@-]{1,60},|bw unlock"
        r"|net user [\w.-]{1,40}|wpa_passphrase\s{1,3}[\"']?[\w.-]{1,32}[\"']?"
        # net use Z: \\host\share VALUE /user:name
        r"|net use (?:[\w*]:? )?(?:\\{2,4}\S{1,120}|https?://\S{1,120})(?=\s{1,3}[^\s/]\S{1,80}\s{1,3}/)"
        r"|rclone obscure|openssl passwd -\w{1,6}|mkpasswd(?: -m [\w-]{1,12})?"
        r"|rabbitmqctl (?:add_user|change_password) [\w.-]{1,40}"
        r"|(?:mosquitto_|mongo)\w{1,10}(?=\s)[^\n]{0,200}? -p|zip(?=\s)[^\n]{0,60}? -p"
        rf"| login(?=\s)[^\n]{{0,200}}? -p)\s{{0,3}}{_ARGUMENT % 6}"
        r"|(?:sqlplus|expdp|impdp|sqlldr)\s(?:-\w\s)?\w{1,30}/([^\s/@\"']{4,80})"
        r"| (?:login|auth)\s{1,3}([0-9a-f-]{32,64}+)(?!\w))",
        in_code=False,
        needs=(
            *(" -p", " -a", " -w", " -n", " -x", " -u", " login "),
            *("bw ", "net use", "rabbitmqctl ", "wpa_", "obscure", "passwd ", " -c", "sqlplus"),
            *("expdp", "impdp", "sqlldr", " -k", " auth ", "alias set", "host add"),
        ),
    ),
    # .netrc, .pgpass, redis.conf
    Rule(
        "password-in-file",
        (
            *("login", ":543", ":*:", "requirepass", "masterauth", "auth-pass", "bindpw"),
            *("wpa-psk", "\npass", "]:", 'send "', "pwd={", "password={", ": psk", "community"),
            *("setuser ", "<auth-user-pass>", "random_password"),
        ),
        # Pwd={VALUE} of ODBC: a brace in the value is doubled
        r"(?:pwd|password)=\{(?![\w.]{1,60}![ras]\})((?:[^{}\n]|\}\}|\{(?!\{)){6,200}+)\}(?=[;\"']|\s*$)"
        r"|\blogin[ \t]{1,9}\S{1,80}[\s/,]{1,40}password:?\s{1,9}[\"']?([^\s\"']{5,}+)"
        # a line of a dialogue or a file of settings, and [host]:port name:VALUE
        r"|\npass(?:word|wd)?[ \t]{1,9}([^\s\"'=:]{6,}+)[ \t]{0,9}(?=[\r\n]|$)"
        r"|send \"([^\s\"\\]{5,}+)\\r|\]:\d{2,5}[ \t]{1,9}[\w.@+-]{1,60}:([^\s\"']{6,}+)"
        r"|:(?:543\d|\*):[^\s:]{1,80}:[^\s:]{1,80}:([^\s\"']{6,}+)"
        r"|(?:requirepass|masterauth|bindpw|wpa-psk|(?<=sentinel )auth-pass\s\S{1,40}"
        r"|(?:(?<=r[ow])|(?<=snmp-server ))community6?)"
        r"\s{1,9}[\"']?([^\s\"']{4,}+)|: psk\s{1,9}\"([^\"\n]{4,80}+)\""
        # Redis, OpenVPN, a state of Terraform
        r"|setuser \S{1,60} (?:[^\s>]\S{0,60} ){0,20}?>([^\s\"']{4,}+)"
        r"|<auth-user-pass>\s{1,4}\S{1,80}\s{1,4}([^\s<]{4,}+)"
        r"|random_password\"(?:[^\"]|\"(?!result\")){0,1500}?\"result\":\s?"
        r"\"((?:[^\"\\\n]|\\.){4,200}+)\"",
        needs=(
            *("pass", "masterauth", ":543", ":*:", "bindpw", "psk", "]:", "wd={", "assword:"),
            *("snmp-server", "rocommunity", "rwcommunity", "setuser "),
        ),
        in_code=False,
    ),
    Rule(
        "password-in-words",
        ("pass", "pw", "key", "token", "secret", *FOREIGN_WORDS),
        rf"(?<![a-z])(?:pass(?:word|phrase|wort|code|wd|e)?|pw|key(?:(?<=(?:api|ret|ess|ate)[ -]key)|(?<=my key))|token|secret(?<!\d:secret)"  # noqa: E501
        rf"|(?:{FOREIGN})(?:\s(?!p[uú]bl|prim)[^\W\d_]{{3,20}}(?=:))?)(?![a-z_]){FOR}"
        rf"[*`\"]{{0,2}}{IS}(?!\s{{0,3}}\n)\s{{0,3}}\*{{0,2}}",
        reads=True,
    ),
    Rule(
        "password-in-words",
        ("pin", "puk"),
        rf"(?<![a-z])(?:pin|puk)(?:[ -]?code)?(?![a-z_]){FOR}[*`\"]{{0,2}}{IS}"
        r"\s{0,3}[*`\"']{0,3}(\d{4,12})(?!\w)",
        proof=Proof.WEAK,
    ),
    Rule(  # use VALUE as the password
        "password-in-words",
        ("use ", "using ", "with ", "set ", "nimm ", "utilise ", "usa "),
        r"(?:use|using|with|set|nimm|utilise|usa)\s[\"'`“„«]?([^\s\"'`”“»]{6,80})[\"'`”“»]?\s"
        r"(?:as|als|comme|como)\s(?:the |your |my |das |la |le |mot de )?(?:\w{1,20} )?"
        r"(?:passe|password|passwort|passphrase|passcode)\b"
        r"(?=\s?(?:[.,;:!?)\n]|$)|\s(?:for|of|to|on|at|in|and|but|if|für|im|pour|de|para)\b)",
        needs=("passe", "password", "passwort", "passphrase", "passcode"),
    ),
    # VALUE is the password, VALUE (the password)
    Rule(
        "password-in-words",
        (" is ", "=", " ist ", " est ", " es ", " was ", " (", "- ", "– ", ", ", "s as "),
        r"(?<![^\s\"'`“„«(:])([^\s\"'`“„«()]{8,80}+)[\"'`”“»]?(?:\s(?:is|was|ist|war|est|es)\s"
        r"|\s?\(|\s=\s|\s(?:\w{1,9}\s){0,2}?works as\s"
        r"|,?\s(?:[-–—]\s)?(?:that['’]?s|that is|which is)\s)"
        r"(?:(?:the|my|our|your|his|her|das|unser|mein|le|la|el)\s)(?:[\w-]{1,20}\s){0,2}?"
        r"(?:password|passwort|passphrase|passcode|pw|mot de passe|contraseña|api[ -]key|token)\b",
        proof=Proof.HINT,
        needs=("passw", "passphrase", "passcode", "pw", "mot de passe", "contraseña"),
        from_word=False,
    ),
    Rule(  # mnemonic: twelve words, or up to 24
        "seed-phrase",
        ("mnemonic", "seed", "phrase", "wallet"),
        r"(?:mnemonic|seed|wallet words|phrase(?:(?<=(?:covery|secret|backup|wallet)[_ ]phrase)))"
        r"[^\n]{0,40}?[\s\"'`=:({\[](?:1[.)]\s?)?"
        r"((?:[a-z]{3,8}[\s,\"'-]{1,6}(?:\d\d?[.)]\s?)?(?=[a-z]{3,8}(?![a-z]))){11,23}+[a-z]{3,8})",
        proof=Proof.SHAPE,
    ),
    # TOTP seed: VALUE, recovery codes: VALUE, VALUE
    Rule(
        "one-time-code",
        ("totp", "otp", "2fa", "mfa", "authenticator", "backup", "recovery"),
        r"(?:(?:totp|otp|2fa|mfa|authenticator)(?:[\w-]{0,20}|[ \w-]{0,20}?(?:seed|secret|key"
        r"|code|setup))[^\n:=]{0,40}[:=]\s{0,3}[\"'`]?((?=[a-z\s]{0,24}[2-7])[a-z2-7]{16,64}"
        r"|(?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{4})(?!\w)"
        r"|(?:backup|recovery)[ _]codes?[^\n:=]{0,40}[:=]\s{0,3}[\"'`\[-]{0,3}\s?"
        r"((?:[a-z0-9]{4,5}[ -]?[a-z0-9]{4,6}(?:[\s,;\"']{1,4}(?:-\s)?"
        r"(?=[a-z0-9]{4,5}[ -]?[a-z0-9]{4,6}(?!\w)))?){1,20})(?!\w))",
        proof=Proof.SHAPE,
    ),
    # credentials: name / VALUE
    Rule(
        "password-in-words",
        (
            *("cred", "login", " in with ", "username/pass", "username and pass", "zugangsdaten"),
            *("identifiants", "账号密码", "zugang ", "acceso ", "accès "),
        ),
        r"(?:(?<![a-z])(?:creds|credentials?|logins?|username/password|username and password"
        r"|identifiants|acceso|accès|credenciales)| in with|zugang(?:sdaten)?|账号密码)"
        rf"(?:{FOR}\s?[:：]|(?:\sfor\s[\w.-]{{1,30}})?[ \t]{{0,2}}(?:are|is|[:=：→–]|sind|[-=]>)?)"
        # The name may be on the next line only behind a colon.
        r"(?:(?<=[:：])\s{0,3}|[ \t]{0,3})[\"'`]?[\w.@+-]{3,60}[\"'`]?"
        r"(?:[ \t]{0,3}[:/,|][ \t]{0,3}|\s(?:and|und|et|y|e|和)\s)[\"'`]?([^\s\"'`,]{6,}+)",
    ),
    Rule(  # name@host / VALUE, root / VALUE
        "password-in-words",
        ("@", "root / ", "admin / "),
        r"(?:@[a-z0-9-]{1,60}(?:\.[a-z0-9-]{1,60}){1,4}|(?<![\w/])(?:root|admin)) / "
        r"[\"'`]?([^\s\"'`,]{6,}+)",
        proof=Proof.HINT,
        needs=(" / ",),
    ),
    # CREATE USER name WITH PASSWORD 'value', IDENTIFIED BY 'value'
    Rule(
        "password-in-sql",
        ("password ", "identified "),
        r"(?:password|identified (?:by|with [a-z_0-9]{1,40} by))(?: as)? ['\"]([^'\"\n]{4,}+)['\"]",
        needs=(" '", ' "'),
    ),
    # user NAME and password VALUE
    Rule(
        "password-in-words",
        USERS,
        rf"(?:{'|'.join(USERS)})(?:name)?(?:\s(?:is|ist|est|es|è))?[ \t:=]{{0,3}}"
        r"[\"'`]?[\w.@+-]{2,60}[\"'`]?\s?[,;/|，]?"
        r"(?:\s(?:and|with|und|mit|et|avec|y|con|e|com|en|met|i|и|с)\s)?\s{0,3}"
        r"(?:(?:the|das|dem|le|la|el|il|o|a)\s)?(?:pass|pw|pwd|pass(?:word|wort|code|phrase)"
        rf"|{FOREIGN})(?![a-z_])[ \t:=]{{0,3}}(?<=[ \t:=])",
        needs=("pass", "pw", *FOREIGN_WORDS),
        reads=True,
    ),
    # with password VALUE, a value on a line of its own, la contraseña a VALUE
    Rule(
        "password-in-words",
        ("pass", "pw", "key", "token", "secret", "psk", *FOREIGN_WORDS),
        rf"(?<![a-z])(?:pass(?:word|phrase|wort|code|wd|e|(?<=with pass))|pw|psk|secret"
        rf"|token(?:(?<=this token)|(?<=my token))|key(?:(?<=(?:this|.api) key)|(?<=my key))"
        rf"|{SERVICES}|{FOREIGN})(?![a-z_-])"
        r"(?:(?:\s\w{1,12})?,\s(?:and )?(?:now )?(?:it['’]?s|it is)\s(?:now )?"
        r"|(?:(?<!pass|word|wort|code)(?<!secret|phrase|passwd)(?<!token)(?<!key|psk)(?<!pw)"
        r"|(?<=la password))(?:\s\w{5,15})?\s(?:in|en|a|para|naar|na|на|till?)\s"
        r"|:?\s{1,4}|\s\d\s)[\"'`“„«]?([^\s\"'`“”„«»,;<>(){}\[\]]{8,200}+)",
        proof=Proof.HINT,
    ),
    # Any text between a word and a value that nothing but a secret looks like.
    Rule(
        "password-in-words",
        (
            *("passw", "passphrase", "pw", "secret", "token", "auth", "login", "identify", "key"),
            *FOREIGN_WORDS,
        ),
        rf"(?:(?<![a-z0-9+])pw(?![a-z+/])|passw|passphrase|pwd|secret|token|auth(?![a-z])|login"
        rf"|identify|{FOREIGN}|(?<![a-z])key(?![a-z-])(?<!public.key)(?<!publishable.key))"
        r"(?![a-z]{0,60}[0-9+/][a-z0-9+/]{6,90}\n)"  # nor in a line of base64
        r"[^\n]{0,60}?[\s\"'|>=({<](?=[^\s\"'`,;<>(){}|]{0,30}\d)"
        r"([^\s\"'`,;<>(){}|]{12,128}+)(?![(\[{:])",
        proof=Proof.NEAR,
    ),
)
