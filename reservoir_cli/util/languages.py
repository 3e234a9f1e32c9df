"""Guess the language of a text by its most common words, or by its script."""

import re
from collections.abc import Collection

#: Words that are common in one language and rare in the others, in lower case.
_FUNCTION_WORDS = {
    "en": "the of and to is was that for it with on are this you have what did we how why when "
    "which do does not be from they i my your our there were can could would",
    "de": "der die das und ist nicht ich wir ihr den dem ein eine einen einem mit auf für fuer im "
    "am vom zum war haben hatte hat was wann wie warum wer von über ueber zu sich auch noch habe "
    "du dein mein unser uns bei nach",
    "fr": "le la les et est des du un une je nous vous il elle ils dans pour pas que qui quoi "
    "quand comment pourquoi avec sur ce cette ai avons avez était été au aux mon ton notre nos "
    "sont à avait sommes étions ça",
    "es": "el los las y es un una del que qué quien cuándo cuando cómo como por para con sobre en "
    "no me nos se lo hemos he ha fue era está mi tu su nuestro al más hicimos dije hablamos "
    "dijimos cuál",
    "it": "il gli e è che di della un una non per con sono era abbiamo ho ha cosa quando come "
    "perché nel nella questo più mi ci si",
    "pt": "o os as e é que do da dos um uma não por para com em no na nos foi era temos você eu "
    "quando como mais meu nosso se isso",
    "nl": "de het een en is niet ik wij we jij van voor met op was hebben heeft wat wanneer hoe "
    "waarom dat die zijn ook naar bij",
}
_WORDS = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
#: The English names of languages that are recognised.
LANGUAGES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
    "zh": "Chinese",
    "ja": "Japanese",
}
#: First-person singular words, in lower case.
_FIRST_PERSON_WORDS = {
    "en": "i my me mine myself",
    "de": "ich mich mir mein meine meinen meinem meiner meines",
    "fr": "je j moi mon ma mes",
    "es": "yo mi mis me mí",
    "it": "io mio mia miei mie mi me",
    "pt": "eu meu minha meus minhas me mim",
    "nl": "ik mij mijn me",
}
_FIRST_PERSON = {
    language: frozenset(words.split()) for language, words in _FIRST_PERSON_WORDS.items()
}
# Not compiled here: most commands never guess a language.
_WORD, _CHINESE, _KANA = r"[^\W\d_]+", "[\u3400-\u4dbf\u4e00-\u9fff]", "[\u3040-\u30ff]"
_FIRST_PERSON_CHINESE = "我(?!们|們)"
_LATIN_END = "\u024f"
_MOST_WORDS = 200  #: Only this many words of a text are examined.


def guess_language(text: str) -> str | None:
    """Return the language whose common words are most frequent in a text, such as ``de``.

    :returns: ``None`` if unclear, ``zh`` and ``ja`` by their scripts, ``other`` for any other
        script.
    """
    words = [word.lower() for word in re.findall(_WORD, text[: 20 * _MOST_WORDS])[:_MOST_WORDS]]
    if not words:
        return None
    foreign = [word for word in words if word[0] > _LATIN_END]
    if 3 * len(foreign) > len(words):
        letters = "".join(foreign)
        return (
            "ja" if re.search(_KANA, letters) else "zh" if re.search(_CHINESE, letters) else "other"
        )
    counts = {language: sum(word in usual for word in words) for language, usual in _WORDS.items()}
    most = max(counts.values())
    best = [language for language, count in counts.items() if count == most]
    return best[0] if most and len(best) == 1 else None


def is_about_speaker(text: str) -> bool:
    """Return whether a question is about its speaker ("my", "I"); if in doubt, by English words."""
    language = guess_language(text) or "en"
    if language == "zh":
        return bool(re.search(_FIRST_PERSON_CHINESE, text))
    pronouns = _FIRST_PERSON.get(language)
    return pronouns is None or not pronouns.isdisjoint(re.findall(_WORD, text.lower()))


def function_words(text: str) -> frozenset[str]:
    """Return the words, in lower case, that are common in the language of a text."""
    return _WORDS.get(str(guess_language(text)), frozenset())


def foreign_function_words(text: str) -> list[str]:
    """Return the words of a text that are common in its language, unless that is English."""
    if guess_language(text) == "en":
        return []
    common = function_words(text)
    return [word for word in dict.fromkeys(re.findall(_WORD, text.lower())) if word in common]


def is_function_word(word: str) -> bool:
    """Return whether a word, in lower case, is common in any of the languages."""
    return any(word in usual for usual in _WORDS.values())


def language_of_function_words(words: Collection[str]) -> str | None:
    """Return the language in which all words, in lower case, are common, if there is one."""
    return next((name for name, usual in _WORDS.items() if usual.issuperset(words)), None)
