"""The patterns of secrets: one rule per format of key, token or password.

The formats are published by the services. The tests compare them with the patterns of
detect-secrets, which takes ten times longer to import than storing a message takes.
"""

from typing import NamedTuple

#: The length of the shortest token.
SHORTEST_TOKEN = 20


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


#: Not inside a word; an escape of JSON (``\\n``) or of a URL (``%20``) is not part of a word.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"


def _token(kind: str, pattern: str, *words: str) -> Rule:
    return Rule(kind, words, _START + pattern)


def _short_prefix(kind: str, pattern: str, *words: str) -> Rule:
    """Return a rule for a token with a prefix so short that base64 and hashes may contain it."""
    return Rule(kind, words, rf"(?<![A-Za-z0-9+/_-]){pattern}")


#: Tokens that are recognised by their format; they contain no spaces.
TOKENS = (
    # Language models and their services
    _token("openai-key", r"sk-(?:proj|svcacct|admin|None)-[\w-]{20,200}", "sk-"),
    _token("llm-key", r"sk-[A-Za-z0-9]{32,64}(?![\w-])", "sk-"),
    _token("openai-key", r"sk-[\w-]{20,200}T3BlbkFJ[\w-]{20,200}", "t3blbkfj"),
    _token("anthropic-key", r"sk-ant-[a-z0-9]{2,10}-[\w-]{20,200}", "sk-ant-"),
    _token("openrouter-key", r"sk-or-v1-[0-9a-f]{64}", "sk-or-v1-"),
    _token("google-api-key", r"AIza[\w-]{35}(?![\w-])", "aiza"),
    _token("google-oauth-secret", r"GOCSPX-[\w-]{28}", "gocspx-"),
    _token("google-oauth-token", r"ya29\.[\w-]{20,500}", "ya29."),
    _token("huggingface-token", r"hf_[A-Za-z]{34,40}(?!\w)", "hf_"),
    _token("groq-key", r"gsk_[A-Za-z0-9]{52}", "gsk_"),
    _token("xai-key", r"xai-[A-Za-z0-9]{70,90}", "xai-"),
    _token("perplexity-key", r"pplx-[A-Za-z0-9]{40,60}", "pplx-"),
    _token("google-oauth-token", r"1//0[\w-]{40,200}", "1//0"),
    _token("nvidia-key", r"nvapi-[\w-]{60,80}", "nvapi-"),
    _token("langsmith-key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", "lsv2_"),
    _token("pinecone-key", r"pcsk_[A-Za-z0-9_]{40,100}", "pcsk_"),
    _token("replicate-token", r"r8_[A-Za-z0-9]{37}", "r8_"),
    # Clouds
    _token(
        "aws-access-key",
        r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])",
        *("a3t", "abia", "acca", "akia", "asia"),
    ),
    _token("azure-storage-key", r"AccountKey=([A-Za-z0-9+/=]{88})", "accountkey="),
    _token("databricks-token", r"dapi[0-9a-f]{32}(?!\w)", "dapi"),
    _token("digitalocean-token", r"do[opr]_v1_[0-9a-f]{64}", "_v1_"),
    _token("docker-token", r"dckr_(?:pat|oat)_[\w-]{27,40}", "dckr_"),
    _token("grafana-token", r"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}", "glsa_"),
    _token("supabase-token", r"sbp_[0-9a-f]{40}", "sbp_"),
    _token("tailscale-key", r"tskey-[a-z]{2,10}-[A-Za-z0-9-]{20,80}", "tskey-"),
    _token("vault-token", r"hvs\.[\w-]{24,200}", "hvs."),
    _token("heroku-key", r"HRKU-[\w-]{36,80}", "hrku-"),
    _token("newrelic-key", r"NRAK-[A-Z0-9]{27}(?!\w)", "nrak-"),
    _token("dynatrace-token", r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}", "dt0"),
    _token("terraform-token", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,80}", ".atlasv1."),
    _token("planetscale-token", r"pscale_(?:tkn|pw|oauth)_[\w.-]{32,64}", "pscale_"),
    _token("netlify-token", r"nfp_[A-Za-z0-9]{36,60}(?!\w)", "nfp_"),
    _token("pulumi-token", r"pul-[0-9a-f]{40}(?!\w)", "pul-"),
    _token("doppler-token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,60}", "dp."),
    # Code and packages
    _token("sonar-token", r"sq[aup]_[0-9a-f]{40}(?!\w)", "sqa_", "squ_", "sqp_"),
    _token("sentry-token", r"sntry[su]_[\w+/=-]{40,400}", "sntrys_", "sntryu_"),
    _token("rubygems-key", r"rubygems_[0-9a-f]{48}(?!\w)", "rubygems_"),
    _token(
        "atlassian-token", r"AT(?:ATT|CTT|BB)3?[A-Za-z0-9_=-]{28,300}", "atatt", "atctt", "atbb"
    ),
    _token("postman-key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", "pmak-"),
    _token("github-token", r"gh[pousr]_\w{36,255}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _token("github-token", r"github_pat_\w{36,255}", "github_pat_"),
    _token(
        "gitlab-token",
        r"(?:glpat|gldt|glft|glsoat|glrt)-[\w.-]{20,60}",
        *("glpat-", "gldt-", "glft-", "glsoat-", "glrt-"),
    ),
    _token("gitlab-token", r"GR1348941[\w-]{20,50}(?!\w)", "gr1348941"),
    _token("gitlab-token", r"glcbt-(?:[0-9a-fA-F]{2}_)?[\w-]{20,50}(?!\w)", "glcbt-"),
    _token("gitlab-token", r"glimt-[\w-]{25}(?!\w)", "glimt-"),
    _token("gitlab-token", r"glptt-[\w-]{40}(?!\w)", "glptt-"),
    _token("gitlab-token", r"glagent-[\w-]{50,1024}(?!\w)", "glagent-"),
    _token("gitlab-token", r"gloas-[\w-]{64}(?!\w)", "gloas-"),
    _token("npm-token", r"npm_[A-Za-z0-9]{36}(?!\w)", "npm_"),
    _token("npm-token", r"//\S{1,200}/:_authToken=\"?([\w-]{20,200})", ":_authtoken="),
    _token("pypi-token", r"pypi-AgE[\w-]{70,1000}", "pypi-age"),
    _short_prefix("artifactory-key", r"AKC[A-Za-z0-9]{30,200}(?!\w)", "akc"),
    _short_prefix("artifactory-key", r"AP[0-9A-F][A-Za-z0-9]{60,200}(?!\w)", "ap"),
    # Messages, mail, money, work
    _token("slack-token", r"(?i:xox[abeoprs])-(?:\d{1,20}-){1,4}[A-Za-z0-9]{16,200}", "xox"),
    _token("slack-token", r"xapp-\d-[A-Z0-9]{5,20}-\d{5,20}-[a-f0-9]{20,100}", "xapp-"),
    _token(
        "slack-webhook",
        r"(?i:https://hooks\.slack\.com/services/T\w{1,30}/B\w{1,30}/\w{1,60})",
        "hooks.slack.com/services/t",
    ),
    _short_prefix("discord-token", r"[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,38}(?![\w.-])", "."),
    _token("telegram-token", r"(?:bot)?(\d{8,10}:[\w-]{35})(?![\w-])", ":"),
    _short_prefix("mailchimp-key", r"[0-9a-z]{32}-us[0-9]{1,2}(?!\w)", "-us"),
    _token("sendgrid-key", r"SG\.[\w-]{22}\.[\w-]{43}", "sg."),
    _short_prefix("twilio-key", r"(?:AC|SK)[0-9a-f]{32}(?!\w)", "ac", "sk"),
    _token("stripe-key", r"[rs]k_(?:live|test)_[0-9a-zA-Z]{24,247}", "k_live_", "k_test_"),
    _token("stripe-secret", r"whsec_[A-Za-z0-9+/=]{32,64}", "whsec_"),
    _token("square-secret", r"sq0csp-[0-9A-Za-z\\_-]{43}", "sq0csp-"),
    _token("shopify-token", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}(?!\w)", "shp"),
    _token("linear-key", r"lin_api_[A-Za-z0-9]{40}", "lin_api_"),
    _token("notion-token", r"ntn_[A-Za-z0-9]{40,60}", "ntn_"),
    _token("figma-token", r"fig[du]_[\w-]{36,80}", "figd_", "figu_"),
    _token("airtable-token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", "pat"),
    _token("brevo-key", r"xkeysib-[0-9a-f]{64}-\w{16}", "xkeysib-"),
    _token("mailgun-key", r"key-[0-9a-f]{32}(?!\w)", "key-"),
    _token(
        "discord-webhook",
        r"discord(?:app)?\.com/api/webhooks/\d{15,25}/([\w-]{50,90})",
        "/api/webhooks/",
    ),
    _token("age-key", r"AGE-SECRET-KEY-1[0-9A-Z]{58}", "age-secret-key-1"),
    _token("json-web-token", r"eyJ[\w=-]{8,4000}\.[\w=-]{8,8000}(?:\.[\w.+/=-]{0,2000})?", "eyj"),
)

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
