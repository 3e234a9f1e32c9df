"""The names of secrets in settings, code and sentences, as patterns for lowercased text. Data."""

from collections.abc import Iterable, Iterator
from itertools import groupby

_KEYS = (
    "api app access auth service account db database priv private client secret encryption master"
    " root admin signing storage shared preshared subscription deploy license consumer webhook host"
    " account ssh hmac crypt cipher unseal recovery certificate project server rest sdk integration"
    " function functions sas write personal user application genie wallet jwt aes wifi wlan"
    " decryption validation".split()
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
    "clave": "clave(?![a-z])(?: de api| api| secreta)?",
    "clé": "clé (?:api|d.api|secrète|privée|(?:du )?wi-?fi)",
    "schlüssel": "schlüssel(?<=wlan[ -]schlüssel)",
    "parola": "parola(?: d.ordine|nız|sı)?",
    "zugangs": "zugangs(?:code|kennung|schlüssel)",
    "zugriffs": "zugriffs(?:token|schlüssel)",
    "jeton": "jeton d.(?:accès|api)",
    "chiave": "chiave (?:api|segreta|privata|di accesso)",
    "chave": "chave (?:de api|api|secreta|privada|de acesso)",
    "klucz": "klucz (?:api|dostępu)",
    "ключ": "ключ (?:api|доступа)",
    "キー": "キー(?<=apiキー|クセスキー|レットキー)",
    "키": "키(?:(?<=[pi스밀] 키)|(?<=api키))",
    "api": "api[ -](?:schlüssel|nyckel|sleutel|nøgle|klucz|klíč|ключ|anahtarı)",
    "lösenord": "lösenord(?:et)?",
    "adgangskode": "adgangskoden?",
    "şifre": "şifre(?:si|n|niz)?",
    "kata sandi": "kata sandi(?:nya)?",
    "парол": "парол(?:ь|я|ем|а|ата)",
    "passord": "passord(?:et)?",
    "lozink": "lozink(?:a|u)",
    "лозинк": "лозинк(?:а|ата)",
    "slaptažod": "slaptažodis",
    "lykilorð": "lykilorð(?:ið)?",
    "κωδικ": "κωδικός(?: πρόσβασης)?",
    **{
        word: word
        for word in (
            *"senha wachtwoord kennwort salasana hasło heslo jelszó zaporka geslo parool".split(),
            *"paswoord kodeord kodeordet salasõna pasahitza contrasinal nenosiri".split(),
            *"wagwoord 密码 密碼 口令 密钥".split(),
            *"密鑰 令牌 パスワード トークン 비밀번호 암호 סיסמה סיסמא รหัสผ่าน पासवर्ड पासकोड".split(),
            *"گذرواژه পাসওয়ার্ড கடவுச்சொல் პაროლი գաղտնաբառ құпиясөз".split(),
            *("mật khẩu", "kata laluan", "كلمة المرور", "كلمة السر", "رمز عبور", "پاس ورڈ"),
            "нууц үг",
        )
    },
}
FOREIGN, FOREIGN_WORDS = "|".join(_FOREIGN_NAMES.values()), tuple(_FOREIGN_NAMES)
_PASSES = (
    "db database key store user admin root smtp mail imap ftp ssh mqtt wifi dn ldap bind sudo sql"
).split()
#: Names of passwords, which leave no doubt, from the significant word on.
_PASSWORDS = (
    f"pass(?:word|wort|wd|phrase|code)|passe(?![a-z])|pwd|{_last_word_pattern(_PASSES, 'pass')}"
    f"|(?:pw|pass)(?![a-z])(?<![a-z0-9]pw)(?<![a-z0-9]pass)"
    f"|{_last_word_pattern(['root', 'bind', 'user', 'admin'], 'pw')}|psk(?![a-z])|{FOREIGN}"
)
#: Names of variables that hold secrets, from the significant word on.
NAMES = (
    f"{_last_word_pattern(_KEYS, 'key')}|{_last_word_pattern(_TOKENS, 'token')}"
    f"|key-data(?<=client-key-data)|key content"
    f"|secret(?<!existingsecret)(?<!existing_secret)(?<!\\d:secret)|{_PASSWORDS}"
)
#: Endings of names that hold something about a secret, not the secret itself.
_ABOUT_WORDS = (
    "id name path file url uri type hash length count field version label policy arn ref hint env "
    "prompt regex _at header algorithm _alg encryption method provider store manager backend "
    "scope source size limit expires expiry format class selector engine location dir endpoint "
    "host prefix suffix placeholder title description message error template _min _max updated "
    "changed created date ttl timeout rotation days strength score status attempts age lifetime "
    "rounds cost index interval period frequency".split()
)
_ABOUT = "".join(f"(?<!{endings})" for endings in _by_length(_ABOUT_WORDS))
#: Names of keys that are no secrets.
NO_SECRET_KEYS = "".join(
    f"(?<!{word}[_-]key)"
    for word in (
        *("public", "publishable", "primary", "foreign", "sort", "partition", "cache", "object"),
        *("row", "group", "idempotency", "dedup", "lookup", "unique", "hash", "range", "file"),
        *("map", "s3", "websocket", "surrogate", "routing", "translation", "message", "query"),
        *("dedupe", "block", "commit"),
    )
)
#: What precedes the name of a user.
USERS = (
    *"user login account benutzer usuario usuário utilisateur utente gebruiker użytkownik".split(),
    *"пользователь логин 用户名".split(),
)
#: Calls that take a name and a password.
CALLS_WITH_NAME = (
    *(".login(", "networkcredential(", "basicauth(", "basiccredential(", ".begin(", "httpbasic("),
    *(".authenticate(", "passwordauthentication(", "usernamepassword(", ".credentials("),
    *("usernamepasswordcredentials(", ".basic_auth(", ".setcredentials(", "defaultcredentials("),
)
SUFFIX = rf"[a-z0-9_]{{0,40}}+(?:-base)?{_ABOUT}"
NAME_WORDS = ("key", "pass", "pw", "secret", "token", "psk")
_SERVICES = (
    "airbrake algolia amplitude assemblyai azure bing bitrise bugsnag clockify cloudflare codecov"
    " cohere coinmarketcap datadog deepgram deepl etherscan exa fastly finnhub freshdesk geoapify"
    " giphy gitlab github grafana hetzner intercom ipinfo jenkins jira lastfm loggly mailjet"
    " mailtrap mapquest messagebird mistral mixpanel nasa newsapi nexmo okta openai opencage"
    " openweather openweathermap opsgenie pagerduty pexels plivo postmark rapidapi rollbar"
    " scaleway serpapi serper shodan snyk sonar spotify stability stripe sumologic"
    " tmdb tomtom travis trello twilio unsplash vercel virustotal vonage wandb weatherapi youtube"
    " zendesk"
).split()
#: What people call the key of a service whose keys have no format of their own.
SERVICES = f"{_last_word_pattern(_SERVICES, 'key')}|{_last_word_pattern(_SERVICES, 'token')}"
#: Words between a name and its value in a sentence.
FOR = (
    r"(?:\s?[(（][^()（）\n]{1,30}[)）]"
    r"|\s(?:for|of|on|at|für|von|vom|zum|zur|pour|de|du|des|del|do|da|della|dello|la|para|van|voor|per"
    r"|till?|until|bis|hasta|för|pro|od|для|от|к|на|untuk|cho|za|u|pe|pentru|dla|do|på|hos|fra|bagi|за|до)"
    r"(?:\s[\w.@'’/-]{1,30}){1,4}?|\s(?:dell|all|nell|sull|d|l)['’]\w[\w.@-]{0,30}(?:\s[\w.@-]{1,30}){0,3}?"
    r"|\s(?:is|was|has been) (?:generated|created|set)(?: for [\w.@-]{1,40})?(?=:)"
    r"|\s(?:nova|nueva|neu|nuova|nouveau|temporal|temporaire|temporär|provisoire|actual|actuel|wi-?fi|wlan|admin|root|vpn))?"
)
#: Words or signs between a name and the value that follows it.
IS = (
    r"(?:(?:['’]s|\s{1,3}(?:(?:is|was|will be|should be|has been|gets?)"
    r"(?: (?:now|set|changed|reset|updated) ?(?:to)?)?|set to|(?:changed|reset) (?:to|from)"
    r"|to|becomes|reads|ist|war|lautet|lautete|heißt|auf|est|était|es|este|esta|c['’]est|era|será|é|è|jest"
    r"|to jest|är|er|je|on|là|adalah|είναι|है|คือ|هي|هو))"
    r"(?:\s{1,3}(?:now|still|currently|jetzt|immer noch|leider|aktuell|ahora|maintenant))?"
    r"\s{0,3}[:：]?(?=[\s\"'`“„«])"
    r"|\s?(?:是|为|為|设为|改为|改成|就是|は|は、|を(?=[「『])|를|는|은)\s?[:：]?|\s{0,2}[:：]|\s{1,3}[-–—]\s)"
)
