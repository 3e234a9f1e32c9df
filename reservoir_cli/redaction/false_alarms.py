"""Recognise false alarms: examples, placeholders, references and names, which are no secrets."""

import re

#: Words that people write in place of a secret.
_PLACEHOLDER = (
    r"(?i)example|placeholder|change.?me|your|xxx|\*\*\*|\.\.\.|…|•|redacted|dummy|sample|insert"
    r"|foobar|fake|mock|test|^pass|password$|secret$|todo|replace|none|null|undefined|12345"
)
#: A variable or a template: a reference to a secret.
_REFERENCE = r"[$%<#@&{]|.*(?:\$\{|\{\{|%\(|\$\()|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$"
_PATH = r"[~.]{0,2}/"
#: Words, each with at most a number after it, as in names of variables, types and resources.
_WORDS = r"_*(?:[A-Za-z]+\d{0,4}|\d{1,4})(?:(?:->|[._:/?-]+)(?:[A-Za-z]+\d{0,4}|\d{1,4}))*_*"
_DOTTED = r"[A-Za-z_][\w$]*(?:(?:\.|->|::)[A-Za-z_][\w$]*)+"
#: The type of a key, such as ``Ed25519PrivateKey``.
_KEY_TYPE = r"[A-Z][A-Za-z]*\d{0,5}(?:Private|Public|Secret|Signing|Verifying)Key"
_WORD = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"
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
    " aes argon bcrypt ed ecdsa hmac hs md pbkdf rs rsa scram scrypt sha".split()
)


def is_real_token(token: str) -> bool:
    """Return whether a token of a known format is not an example from a manual."""
    return not re.search(r"EXAMPLE|x{8}|X{8}", token)


def is_real(value: str, *, in_code: bool) -> bool:
    """Return whether a value may be a secret: not a placeholder, a word or a name.

    A value without a digit is far more likely a word than a password.

    :param in_code: the value may be the name of a variable or a resource.
    """
    return (
        any(map(str.isdigit, value))
        and any(map(str.isalpha, value))
        and not re.search(_PLACEHOLDER, value)
        and not re.match(_REFERENCE, value)
        and not (in_code and (re.match(_PATH, value) or _is_name(value)))
    )


def _is_name(value: str) -> bool:
    """Return whether a value is a type of a key, or words of which one is typical of names.

    In dotted names, where random tokens can match, only longer words count.
    """
    if re.fullmatch(_KEY_TYPE, value):
        return True
    words = {word.lower() for word in re.findall(_WORD, value)} & _NAME_WORDS
    if re.fullmatch(_WORDS, value):
        return bool(words)
    return bool(re.fullmatch(_DOTTED, value)) and any(len(word) > 3 for word in words)
