"""Recognise false alarms: examples, placeholders, references and names, which are no secrets."""

import re
from enum import IntEnum
from itertools import pairwise

#: What stands for a part that is left out, wherever it is in a value.
_LEFT_OUT = r"\*\*\*|\.\.\.|…|•|(.)\1{5}|\[redacted"
#: Words that ask for another value: a name may stand beside them, as in ``your-acme-key``.
_ASKING = "your|example|placeholder|changeme|change|replace|redacted|todo|undefined"
#: Other words that people write in place of a secret.
_STANDING_IN = (
    "password|passwort|passwd|pass|secret|dummy|sample|insert|foobar|foo|bar|fake|mock|testing|test"
    "|none|null|nil|my|not|true|false|xxx+|12345(?:67?8?9?0?)?"
)
#: Words that stand beside these: names of secrets, beginnings of tokens, and words of sentences.
_BESIDE = (
    "actual access account admin aiza akia api app asia auth aws basic baz bearer client code"
    " correct create credential credentials database db default dev do empty enter fill for from"
    " generated ghp glpat github goes good here hf id in is it key keys local long me mysql needed"
    " new of old on one only openai paste phrase pk postgres prod proj provide provided put random"
    " real redis replaced required root sa safe secure server set sk some something staging string"
    " strong super svc temp the this to token top update use used user username v value very with"
    " word x yet you abc xoxb xoxp".split()
)
_FILLING = f"(?:{_ASKING}|{_STANDING_IN}|{'|'.join(sorted(_BESIDE, key=len, reverse=True))})++"
_SEPARATED = r"[A-Za-z]+\d{0,3}(?:[-_./: ][A-Za-z]+\d{0,4}|[-_./: ]\d{1,4})+"
#: Numbers that people count up, and days.
_COUNTED = r"0?12345?6?7?8?9?0?|20\d{6}"
_MOST_DIGITS = 4  #: A placeholder may end with a number, such as a year.
#: A variable, a template, a colour or a hash of a password: a reference to a secret.
_REFERENCE = (
    r"(?:\$[{(]|\{\{|<[%?]|%\()|.*(?:\$\{[^{}]{0,80}\}"
    r"|\{\{[^{}]{0,80}\}|%\(\w+\)|\$\([^()]{0,80}\))"
    r"|.*(?:\$[{(]|\{\{)[a-z]*$|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|%[a-z]$|#[0-9a-f]{3,8}$"
    r"|\$(?:2[abxy]|[1-9y]|argon2\w{0,3}|scrypt|pbkdf2[\w-]{0,9}|ansible_vault)[$;]|#\d{1,5}$"
    r"|(?i:enc\[|op://|vault:|arn:|ssm:|secret://|keyring:)"
    # a key that is public, and rules that check a value: required|min:8
    r"|pk_(?:live|test)_|(?:[a-z_]+(?::[\w,]{1,20})?\|){1,9}[a-z_]+(?::[\w,]{1,20})?$"
)
#: The beginning of a template, if what follows does not look like a password.
_OPENED = r"[$@%#&]?[{(<]"
#: A name of a variable behind its sign, as in ``$DB_PASSWORD1`` or ``%USER%``.
_VARIABLE = r"[$@%&*:!#]+([A-Za-z_]\w*)(?:[.\[:-][\w.\[\]:'\"-]*|%|\$)?$"
_PATH = r"[~.]{0,2}/"
#: Words, each with at most a number after it, as in names of variables, types and resources.
_WORDS = r"_*(?:[A-Za-z]+\d{0,4}|\d{1,4})(?:(?:->|[._:/?-]+)(?:[A-Za-z]+\d{0,4}|\d{1,4}))*_*"
_DOTTED = r"[A-Za-z_][\w$]*(?:(?:\.|->|::)[A-Za-z_][\w$]*)+"
#: The type of a key, such as ``Ed25519PrivateKey``.
_KEY_TYPE = (
    r"(?:\w{1,20}\.){0,3}[A-Z][A-Za-z]*\d{0,5}(?:Private|Public|Secret|Signing|Verifying)Key"
)
_WORD = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"
_DATE = r"\d{4}-\d\d-\d\d|\d{1,2}\.\d{1,2}\.\d{2,4}"
#: A number with its unit, a version, an ordinal, and what else is counted.
_MEASURE = (
    r"\d+(?:\.\d+)?-?(?:bits?|bytes?|[kmg]i?b|ms|secs?|seconds?|mins?|minutes?|hours?|days?|weeks?|months?|years?|chars?|characters?|digits?"
    r"|letters?|x|th|nd|rd|st|tokens?|words?|symbols?|times?)\b|v?\d+\.\d+\.\d+|\d+/\d+\w*"
    r"|\d+\s?(?:文字|桁|位|个字符|字符|자|[日天年月回分次时時週周]|[か个ヶ]月|일|개월|년)\S*"
)
#: Versions, words with a number, addresses, calls, settings, keys that are pressed, and patterns.
_NOT_MIXED = (
    r"^v?\d+[.\d]*$|^[a-z]+\d{0,3}$|://|::|\w\("
    r"|^[a-z]+(?:-[a-z]+)*-\d{1,3}[a-z]?$|^[a-z_]+=|^(?i:[a-z]+\+){1,3}\w{1,3}$|\[\^?\w-\w|(?i:abcdef)"
)
_LONGEST_NAME = 200
#: Nearly every name in the place of a secret contains one of these words.
_NAME_WORDS = frozenset(
    # secrets, and where they are stored
    "access account api auth bearer cert certificate cred credential credentials creds hash jwt"
    " key keys keystore keyvault kms manager oauth pass passwd password passwords provider pwd pw"
    " secret secrets ssl tls token tokenizer tokens vault"
    # programs
    " app args argv cfg client config configuration conf context ctx db data default"
    " env environ get header headers id input kwargs local model module"
    " name new node obj object opts options output param params parser process props query req"
    " request res response result row self session settings spec this user users util"
    " utils val value values var vars"
    # types and rules
    " array base bin bool byte bytes char chars column decode encode enum float hex int"
    " integer keyword len length long max min number optional required str string text type"
    " uuid varchar"
    # algorithms
    " aes argon bcrypt ed ecdsa hmac hs md pbkdf rs rsa scram scrypt sha utf bit".split()
)
#: What sentences about passwords contain, and labels: pass phrases do not.
_MESSAGE_WORDS = frozenset(
    "must your should enter type choose set see use need required invalid incorrect wrong missing"
    " reset forgot change changed contain contains least most minimum maximum character characters"
    " letters digits field only cannot failed match new step steps page version part chapter line"
    " error errors try again retry attempt attempts after before per expires login log sign user"
    " account email confirm repeat times default optional same last since every".split()
)
_MESSAGE = r"(?i)pass|kennw|contrase|senha|parol|wachtw|hasł|heslo|şifre|zeichen|cara[ct]|charact|karakt|tecken|tegn|znak|символ|знак"  # noqa: E501
#: Words of sentences, which no pass phrase of four words lacks by chance, except one with numbers.
_SENTENCE_WORDS = frozenset(
    "a an and are as at be by can for from has have if in is it my no not of on one or"
    " that the this to was will with you please der die das und"
    " ist nicht le la les est pas el los es no ein eine den dem des für von mit zu bei auf aus"
    " im am dein deine ihr ihre sein bitte un une du de des et ou pour avec sur votre vos ton"
    " son dans una y o para con por su tu al del il lo gli di del per con tuo che een het van"
    " voor je uw met en att för på och med do da em com sua seu para nie na do od się jest ve"
    " bir için wie beim vom zum als que como".split()
)
#: How seldom each letter, a to z, follows another one in words of 17 languages and in names of
#: programs: a digit is what its share costs in bits.
_RARITY = (
    "64338646554232949232446765",  # a
    "24661768267275379346388947",  # b
    "29472881263477278463489964",  # c
    "26651677286464269446366954",  # d
    "55336546455331657123656575",  # e
    "27762367198376279344387967",  # f
    "27871744297363379235377978",  # g
    "27761786287354279353476958",  # h
    "35342548775342358433647785",  # i
    "27541787374544269634378997",  # j
    "27662777295375179333366948",  # k
    "26641667196355269844468958",  # l
    "14761878297535239756489959",  # m
    "27432536295664378732457945",  # n
    "64437546665332549234333885",  # o
    "27672675397376149153488959",  # p
    "74776787789475877467057999",  # q
    "26541657295544269433456954",  # r
    "36372665284556337731467954",  # s
    "27671774296565269343366946",  # t
    "44443456445332539222667775",  # u
    "18771888297675289567568946",  # v
    "17552785196673369447598726",  # w
    "35352466297556427541666457",  # x
    "34244555554433539423663965",  # y
    "15541966275553359675365934",  # z
)
#: Words written as one, or joined by hyphens: a pass phrase, or a name of several words.
_JOINED_WORDS = re.compile(
    r"(?:[A-Z][a-z]{2,}){3,}|(?:[A-Z][a-z]{2,}){2,}[!?#$%^&*~]{1,2}|[a-z]{3,}(?:-[a-z]{3,}){3,}"
)
#: The same in lower case, in a place that holds nothing but a value. A shorter one may be a word.
_LOWERCASE_WORDS = re.compile(r"[a-z]{13,40}|(?=[a-z-]{12})[a-z]{3,}(?:-[a-z]{3,}){2,6}")
#: Endings of long words of several languages.
_WORD_ENDING = re.compile(
    "(?:tions?|sions?|ments?|mente|ness|ings?|ed|[ai]bles?|ly|less|ful|ity|[ae]n[ct]es?|ism|ists?|"
    "i[sz]ed?(?<!aise)|ive|[ao]ry|ious|ical|ator|ung|ungen|[hk]eit(?:en)?|lich(?:e[nrs]?)?|"
    "isch(?:e[nrs]?)?(?<![ft]isch)|schaft|bare?|iert(?:e[nrs]?)?|ieren|ci[oa]n|cao|"
    "[ai]d[oa]s?|[aio]ir[eo]|[ao]ri[ao]|zion[ei]|iques?|eurs?|euses?|icat[oaie]|zat[oaie]|"
    "ivo|iva|heid|lijke?|baar|ingen|owan[yae]|[ae]nie|ning|ligt?|"
    "else|erad|eret|eerd|isk[at]?|linen|li?wy|low[aey])$"
)
#: Parts of names of variables, labels and resources.
_NAME_PART = re.compile(
    "pass|word|kenn?w|contras|senha|wacht|secret|token|cred|value|input|field|config|param|string"
    "|variab|account|login|admin|crypt|your|here|client|server|default|example|managed"
    "|database|cookie|cluster|service|folder|label|number|nummer|datum|name|naam|answer|anonym"
    "|(?:^|-)(?:ssh|ftp|https?|smtp|imap|redis|mysql|postgres|prod|dev|stage|staging|test)(?:-|$)"
)
#: Letters with a sign behind them that neither names nor sentences have.
_SIGNED_WORD = re.compile(r"[A-Za-z]{8,}[#$%^&~]{1,2}")
#: Signs that no name has between letters.
_ODD_SIGN = re.compile(r"[A-Za-z0-9][!#$^~][A-Za-z0-9]|[A-Za-z][!@#%&][A-Z]")
#: Signs that are rare in names and addresses: a password without a digit has two of them.
_STRANGE = "!#$^~|?%&*@(){}[]<>;"
#: What only code has: calls, indexes, operators, types, and characters in HTML.
_EXPRESSION = (
    r"[\w)\]](?:\(\w{0,40}\)|\[\w{0,40}\])|->|::|===|&&|\|\||\(\?[:=!<]|\]\(|\)[;.]|\($|&#?\w{1,8};"
    r"|^\[?[A-Za-z_]\w*[!?]?[)\]}>!]*:?$"
    r"|^[A-Za-z_][\w.$:]*(?:[(\[{<][\w.$:=]*){1,4},?$|^[\[{(<][A-Za-z]+[\]})>]"
)
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Proof(IntEnum):
    """How surely the surroundings say that a value is a secret."""

    NEAR = 0  #: Any text may follow: only what cannot be anything else counts.
    HINT = 1  #: Any word may follow: only what looks like a password counts.
    WEAK = 2
    SURE = 3
    CERTAIN = 4  #: The place of a password, where no other value can stand.
    SHAPE = 5  #: The form of the value, behind these words, is that of a secret.


def is_real_token(token: str) -> bool:
    """Return whether a token of a known format is not an example from a manual."""
    return not re.search(r"EXAMPLE|x{8}|X{8}|\*{4}|(?i:your[-_])", token) and not _is_wordy(token)


def _is_wordy(token: str) -> bool:
    words = re.split(r"[-_.]", token)[1:]
    return len(words) >= 3 and all(
        re.fullmatch(r"[a-z]{2,12}\d{0,2}|[A-Z]{2,12}\d{0,2}|[A-Z][a-z]{2,12}|v?\d", word)
        and (word.isdigit() or re.search(r"(?i)[aeiouy]", word))
        for word in words
    )


#: Kinds of characters that change as in a drawn password: ``kX9``, ``x7q``.
_DRAWN = r"[A-Za-z]\d[A-Za-z]|[a-z][A-Z]+\d|[A-Z][a-z]+\d(?=.)|\d[A-Za-z]+\d"


def is_real(
    value: str,
    *,
    in_code: bool,
    proof: Proof = Proof.WEAK,
    pin: bool = False,
    joined: bool = False,
    held: bool = False,
) -> bool:
    """Return whether a value may be a secret: not a placeholder, a word or a name.

    A value without a digit is more likely a word than a password, unless its letters follow each
    other as in no word.

    :param in_code: the value may be the name of a variable or a resource.
    :param pin: the value may consist of digits.
    :param joined: the value may consist of words that are joined to one.
    :param held: these may be in lower case, as the place holds nothing but the value.
    """
    if _is_reference(value):
        return False
    words = value.split()
    if len(words) > 1 or proof is Proof.SHAPE:
        return _is_pass_phrase(words, in_code=in_code, proof=proof)
    if len(value) < 60 and _is_placeholder(value):
        return False
    if value.isdecimal():
        return pin and 4 <= len(value) <= 12 and not re.match(r"(?:19|20)\d\d$", value)
    if not any(map(str.isalpha, value)) or not value.strip("=-_.*#~"):
        return False
    if held and _LOWERCASE_WORDS.fullmatch(value):
        return not _is_name_or_word(value)
    return _looks_like_password(value, in_code=in_code, proof=proof, joined=joined)


def _is_name_or_word(value: str) -> bool:
    """Return whether words in lower case are a name, or one long word of a language."""
    last = value.rpartition("-")[2]
    return (
        _names_or_says_something(value)
        or _NAME_PART.search(value) is not None
        or (len(last) >= 7 and _WORD_ENDING.search(last) is not None)
    )


def _looks_like_password(value: str, *, in_code: bool, proof: Proof, joined: bool) -> bool:
    """Return whether a single word looks like a password, for how sure its surroundings are."""
    if proof <= Proof.HINT and not _is_mixed(value):
        return False
    if proof is Proof.NEAR and not _is_drawn(value):
        return False
    if any(map(str.isdigit, value)):
        if len(value) > _LONGEST_NAME:
            return True
        return not (in_code and (_is_path(value) or _is_name(value)))
    return proof > Proof.WEAK and _is_odd(value, joined=joined, certain=proof is Proof.CERTAIN)


def _is_placeholder(value: str) -> bool:
    """Return whether a value is made of words that people write in place of a secret.

    One such word in a password, such as ``Berlin12345!``, makes no placeholder of it.
    """
    if re.search(_LEFT_OUT, value):
        return True
    plain = re.sub("(?i)w0rd", "word", re.sub("%[0-9A-F]{2}", "-", value))
    words = [x.lower() for x in re.findall(rf"{_WORD}|\d+", plain)]
    if any(re.fullmatch(_ASKING, x) for x in words) and re.fullmatch(_SEPARATED, plain):
        return True
    if not any(re.search(rf"(?:{_ASKING}|{_STANDING_IN})", x) for x in words):
        return False
    numbers = [x for x in words if x.isdecimal() and not re.fullmatch(_COUNTED, x)]
    return sum(map(len, numbers)) <= _MOST_DIGITS and all(
        x.isdecimal() or re.fullmatch(_FILLING, x) for x in words
    )


def _is_mixed(value: str) -> bool:
    """Return whether a value mixes letters and digits as passwords do, and names do not."""
    kinds = (r"[a-z]", r"[A-Z]", r"\d", r"[^\w\s:/]")
    bare = value.rstrip(".,:;!?")
    if not bare.isascii() or re.search(_NOT_MIXED, bare):
        return False
    if re.fullmatch(r"(?=.*\d)[0-9a-f]{32,}", bare):
        return True
    return sum(bool(re.search(kind, bare)) for kind in kinds) >= 3 or is_random(bare)


def _is_path(value: str) -> bool:
    """Return whether a value is a path, and not a key in base64 that begins with a slash."""
    return re.match(_PATH, value) is not None and (value.count("/") > 3 or not _is_drawn(value))


def _is_drawn(value: str) -> bool:
    """Return whether kinds of characters change as in no name, path, version or address."""
    kinds = [0 if x.islower() else 1 if x.isupper() else 2 if x.isdigit() else 3 for x in value]
    changes = sum(x != y for x, y in pairwise(kinds))
    return (
        {0, 1, 2} <= set(kinds)
        and (
            not re.search(r"[/@\\]|^[\w.-]+[:=]|\.\w{2,4}$", value)
            or re.fullmatch(r"[A-Za-z0-9+/]{32,}={0,2}", value) is not None
        )
        and changes >= 0.48 * (len(value) - 1)
        and not _has_name_word(value)
    )


def _is_pass_phrase(words: list[str], *, in_code: bool, proof: Proof) -> bool:
    """Return whether words are a password with blanks rather than a sentence."""
    if proof is Proof.SHAPE:
        return _is_shaped(" ".join(words))
    plain = {word.strip(".,:;!?").lower() for word in words}
    if plain & _MESSAGE_WORDS or len(words) > 12:
        return False
    if plain & _SENTENCE_WORDS:
        return proof > Proof.HINT and _is_odd_sentence(words)
    if 2 * sum(bool(re.search(_DRAWN, word)) for word in words) > len(words):
        return True
    if any(len(word) >= 4 and is_real(word, in_code=in_code, proof=proof) for word in words):
        return not re.search(_MEASURE, " ".join(words))
    if proof <= Proof.WEAK or re.search(_MEASURE, " ".join(words)):
        return False
    bare = [word.rstrip(".,!?") for word in words]
    numbered = any(map(str.isdigit, "".join(bare)))
    if not all(word.isalnum() if numbered else word.isalpha() for word in bare):
        return False
    # "Step 2 failed" is no pass phrase.
    return len(words) >= 4 or (len(words) == 3 and bool(re.search(r"\d\d", "".join(bare))))


def _is_shaped(text: str) -> bool:
    """Return whether a text is codes, or words of a wallet: few of them are words of sentences."""
    if any(map(str.isdigit, text)):
        return True
    words = re.findall("[a-z]+", text.lower())
    common = [x for x in words if x in _SENTENCE_WORDS or re.search("(?:[^su]s|ed|ing)$", x)]
    return len(words) >= 12 and 6 * len(common) <= len(words)


def _is_odd_sentence(words: list[str]) -> bool:
    """Return whether words of a sentence hold a number as a pass phrase does."""
    text = " ".join(words)
    if len(words) < 4 or text[-1] in ".:!?" or re.search(f"{_MESSAGE}|{_MEASURE}", text):
        return False
    numbered = [word for word in words if any(map(str.isdigit, word))]
    return 1 <= len(numbered) <= 2 and all(word.isalnum() for word in words) and len(words) <= 8


def _is_reference(value: str) -> bool:
    if re.match(_REFERENCE, value) or re.fullmatch(_DATE, value):
        return True
    if re.match(_OPENED, value) and not is_scrambled(value):
        return True
    variable = re.match(_VARIABLE, value)
    return variable is not None and not is_random(variable[1])


def is_scrambled(value: str) -> bool:
    """Return whether letters and signs change as in neither a name nor code with brackets."""
    kinds = [0 if x.islower() else 1 if x.isupper() else 2 if x.isdigit() else 3 for x in value]
    if len(value) < 8 or 3 not in kinds or len(set(kinds)) < 3:
        return False
    changes = sum(x != y or x == 3 for x, y in pairwise(kinds))
    strange = sum(x in _STRANGE for x in value)
    if changes < 0.4 * (len(value) - 1) or strange < (1 if 2 in kinds else 2):
        return False
    return not (_is_balanced(value) or re.search(_EXPRESSION, value))


def _is_balanced(value: str) -> bool:
    open_brackets: list[str] = []
    for sign in re.findall(r"[(\[{<>}\])]", value):
        if sign in _CLOSING:
            open_brackets.append(_CLOSING[sign])
        elif not open_brackets or open_brackets.pop() != sign:
            return False
    return not open_brackets and not set(_CLOSING).isdisjoint(value)


def is_random(word: str) -> bool:
    """Return whether letters and digits change as in no word or name."""
    names = {part.lower() for part in re.findall(_WORD, word) if len(part) > 2}
    if names & _NAME_WORDS:
        return False
    runs = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", word)
    return len(word) >= 7 and len(runs) >= 3 and len(word) / len(runs) < 2.6


def _is_odd(value: str, *, joined: bool, certain: bool) -> bool:
    """Return whether a value without digits is no word of a language."""
    if (joined and _JOINED_WORDS.fullmatch(value)) or _SIGNED_WORD.fullmatch(value):
        return not _names_or_says_something(value)
    if not _is_path(value) and is_scrambled(value):
        return True
    letters = "".join(filter(str.isalpha, value))
    if len(letters) < 6 or not letters.isascii():
        return certain and len(letters) >= 6
    if certain and len(value) >= 8 and not re.fullmatch(r"[a-z]+(?:[_-][a-z]+)*", value):
        return True
    if len(value) >= 8 and _ODD_SIGN.search(value) and not re.search(r"[=(<>]", value):
        return True
    if re.search(r"[/=]", value) or _has_name_word(value):
        return False
    return len(letters) >= 8 and _rarity(value.lower()) > (3.8 if len(letters) >= 10 else 4.3)


def _rarity(lowered: str) -> float:
    """Return how seldom the letters of words follow each other, in the mean of their pairs."""
    first = ord("a")
    pairs = [pair for word in re.findall("[a-z]+", lowered) for pair in pairwise(map(ord, word))]
    return sum(int(_RARITY[x - first][y - first]) for x, y in pairs) / max(1, len(pairs))


def _names_or_says_something(value: str) -> bool:
    """Return whether one of a value's words is typical of names or of sentences."""
    words = {word.lower() for word in re.findall(_WORD, value)}
    return not words.isdisjoint(_NAME_WORDS | _MESSAGE_WORDS | _SENTENCE_WORDS)


def _has_name_word(value: str) -> bool:
    words = {word.lower() for word in re.findall(_WORD, value) if len(word) > 3}
    return bool(words & _NAME_WORDS)


def _is_name(value: str) -> bool:
    """Return whether a value is a type of a key, or words of which one is typical of names.

    In dotted names, where random tokens can match, only longer words count.
    """
    if re.fullmatch(_KEY_TYPE, value) or re.fullmatch(_MEASURE, value.lower()):
        return True
    words = {word.lower() for word in re.findall(_WORD, value)} & _NAME_WORDS
    if max(map(len, words), default=3) < 3 and is_random(value):
        return False
    if re.fullmatch(_WORDS, value):
        return bool(words)
    return bool(re.fullmatch(_DOTTED, value)) and any(len(word) > 3 for word in words)
