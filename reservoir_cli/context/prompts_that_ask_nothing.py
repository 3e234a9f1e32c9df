"""Recognise prompts for which nothing is recalled: consent, thanks, commands of clients. Pure."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile, product

from reservoir_cli.storage.search.fulltext import STOP_WORDS
from reservoir_cli.util.languages import is_function_word, language_of_function_words
from reservoir_cli.util.unicode_text import has_question_mark

#: What may be a command of a client, such as ``/compact``. A path has a second slash.
_COMMAND = re.compile(r"/([^\W\d][\w:.-]*)(?=\s|$)\s*")
#: Commands of clients that take arguments; other words before a text, as ``/tmp``, are paths. Those
#: of MCP servers are recognised by their beginning.
_COMMANDS = frozenset(
    # Claude Code
    "add-dir agents batch btw bug compact config effort feedback goal loop memory mcp model "
    "output-style plan plugin pr-comments pr_comments rename resume review schedule "
    "security-review simplify statusline teleport ultraplan ultrareview "
    # Codex
    "approvals fork init mention new personality permissions skills "
    # Gemini CLI
    "chat compress dir directory extensions hooks restore "
    # opencode, Qwen Code and others
    "connect continue editor models sessions share summarize summary undo redo".split()
)
_SERVER_COMMAND = "mcp__"
#: A word of two or more characters: a single letter or digit picks an option.
_WORD = re.compile(r"[^\W_]{2,}")
_BEGINNING = 400  # how much of a prompt is read to tell what kind it is, in characters
#: Words of consent, refusal, thanks, greeting and continuation.
SAYS_NOTHING = frozenset(
    # English
    "ok okay kk yes yeah yep yup sure right correct no nope nah thanks thank thx ty please pls "
    "continue proceed go ahead next done great good nice cool perfect fine awesome excellent well "
    "stop wait hi hello hey bye lgtm agreed exactly again retry resume same sounds looks now "
    # German
    "ja jo jep nein nee danke dankeschön bitte weiter gut genau stimmt richtig prima super toll "
    "klar passt los mach mache fertig hallo tschüss einverstanden gerne gern vielen dank so "
    # French
    "oui ouais non merci continuez continuer vas allez bien bon parfait accord daccord salut "
    "bonjour voilà exactement beaucoup plait plaît "
    # Spanish, Italian, Portuguese
    "sí si gracias vale bueno perfecto claro sigue continúa continua adelante hola favor listo "
    "muchas exacto genial dale sì grazie va bene avanti perfetto prego certo ciao esatto ottimo "
    "sim obrigado obrigada perfeito beleza valeu olá ótimo "
    # Dutch, Swedish, Polish, Turkish
    "bedankt ga door verder goed precies hoi nej tack fortsätt bra tak nie dzięki dziękuję dalej "
    "dobrze proszę kontynuuj evet hay\u0131r tamam teşekkürler devam lütfen "
    # Russian, Ukrainian, Korean
    "да нет спасибо продолжай продолжайте дальше хорошо ладно отлично ок давай пожалуйста верно "
    "точно привет так ні дякую далі продовжуй добре 네 아니요 감사합니다 고마워 고마워요 계속 "
    "계속해줘 좋아 좋아요 알겠습니다".split()
)
#: Words that say nothing beside others; one of them alone may be a name.
_BESIDE_OTHERS = frozenset(
    "dir euch ihnen alles sehr schön sieht aus jetzt es funktioniert klappt läuft "
    "très me tout marche fonctionne "
    # Greetings by the time of day or week
    "morning afternoon evening night weekend day everyone everybody all morgen abend tag nacht "
    "wochenende feierabend schönes schönen schöne guten gute zusammen alle "
    "bonne journée soirée nuit "
    "buenos buenas días tardes noches buongiorno buonasera giornata serata bom boa dia noite tarde "
    "fijne fijn avond dag".split()
)
#: Words that say nothing unless a question mark follows: then they are names, as of a language.
_ALSO_NAMES = frozenset(("go", "next", "nice", "super", "prima"))
#: Words of a question, by language, in any place.
_QUESTION_WORDS = {
    "en": frozenset("what why how who whom whose".split()),
    "de": frozenset(
        "warum wieso weshalb was wer wem wen wessen woher wohin womit wofür worüber".split()
    ),
    "fr": frozenset("pourquoi comment quoi combien quel quelle quels quelles".split()),
    "es": frozenset("qué quién cómo cuándo cuál dónde cuánto".split()),
    "it": frozenset("cosa perché chi quale quanto".split()),
    "pt": frozenset("quem porque porquê quê qual quanto".split()),
    "nl": frozenset("wat waarom hoe hoeveel".split()),
}
#: Words that also join clauses: they ask at the beginning.
_FIRST_WORDS = {
    "en": frozenset("when where which".split()),
    "de": frozenset("wann wie wo welche welcher welches".split()),
    "fr": frozenset("quand que qu qui où".split()),
    "es": frozenset("que quien cuando como por".split()),
    "it": frozenset("che come quando dove".split()),
    "pt": frozenset("que quando como onde por".split()),
    "nl": frozenset("wanneer wie waar welke".split()),
}
#: Verbs that begin a question, and question words of other languages.
_FIRST_OTHERS = frozenset(
    "is are was were does did can could should would will has have hasn isn aren "
    "ist sind war waren hat haben hatte kann können soll sollen gibt est sont avons avez "
    "hay tenemos abbiamo temos is zijn kunnen hebben "
    "что какой какая какие кто где когда почему зачем как сколько що який яка хто коли чому "
    "co który która jaki jaka kto gdzie kiedy dlaczego jak ile hangi nerede nas\u0131l "
    "neden".split()
)
#: The same in scripts without spaces. Patterns beyond ASCII are compiled for texts beyond ASCII.
_ASKING = (
    "什么|甚么|什麼|哪|谁|誰|怎么|怎麼|为什么|為什麼|吗|嗎|多少|几[个点]|何|どこ|いつ|なぜ|どう|"
    "뭐|무엇|어디|언제|왜|어떻게|"
    # Not to be told later, as in "tell me once it is done", nor "I need you to do it".
    "(?<![后後])告[诉訴]我|提醒我|我(?:需要(?![你您])|忘了)|(?<!たら)教えて|思い出せ|忘れた|"
    "(?<!면)(?<!면 )알려|기억이 안"
)


def _phrases(*lists: str) -> Iterator[str]:
    """Yield each phrase of one word of each list."""
    return map(" ".join, product(*(words.split() for words in lists)))


#: Beginnings of prompts that ask to be told or reminded of something, which is a definite one.
_REQUESTS = frozenset(
    chain(
        # English
        _phrases("i we", "need lack require", "the our my your his her their its that"),
        _phrases("i'm we're", "looking", "for", "the our my your his her their its that"),
        _phrases("i we", "forgot can't cannot", "the our my remember recall"),
        _phrases("i we", "don't", "remember recall"),
        _phrases("tell remind", "me us"),
        _phrases("give send", "me us", "the our my your his her their"),
        # German
        _phrases(
            "ich wir",
            "brauche brauchen benötige benötigen suche suchen",
            "den die das unser unsere unseren mein meine meinen",
        ),
        _phrases("sag sage nenn nenne verrate gib schick schicke", "mir uns"),
        _phrases("erinner erinnere", "mich uns"),
        _phrases("ich wir", "weiß weiss wissen", "nicht", "mehr"),
        # French
        _phrases("dis-moi dites-moi donne-moi donnez-moi rappelle-moi rappelez-moi indique-moi"),
        _phrases("il", "me nous", "faut", "le la les notre nos mon ma mes"),
        _phrases("je", "cherche", "le la les notre nos mon ma mes"),
        _phrases("j'ai", "besoin oublié", "du de la le les notre"),
        # Spanish
        _phrases("dime dinos dame danos recuérdame recuérdanos"),
        _phrases("necesito necesitamos busco", "el la los las nuestro nuestra mi mis"),
        _phrases("no", "recuerdo", "el la los las nuestro nuestra mi mis"),
        # Italian, Portuguese
        _phrases("dimmi dicci dammi ricordami ricordaci"),
        _phrases("mi ci", "serve servono", "il lo la i gli le"),
        _phrases("ho", "bisogno", "del dello della dei delle"),
        _phrases("diga-me diz-me lembra-me lembre-me dê-me dá-me"),
        _phrases("me", "diga diz lembra lembre dê dá"),
        _phrases("preciso precisamos", "do da dos das"),
        # Dutch
        _phrases("zeg geef vertel", "me mij ons"),
        _phrases("ik", "zoek", "de het ons onze mijn"),
    )
)
#: What follows such a beginning in an order to do something, or to be told of it later.
_ORDERING = frozenset("once to bescheid wenn sobald als dès cuando zodra".split())
_LONGEST_REQUEST = 4
_REQUEST_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
#: Words that join a question to what was said before, or only precede it.
_JOINING = frozenset("and but so und aber et mais y pero e ed ma mas en maar".split())
_PRECEDING = _JOINING | frozenset("hm hmm hmmm mm mh oh ah uh um äh ähm then dann also".split())
_FENCED = re.compile(r"(?ms)^```.*?(?:^```[ \t]*$|\Z)")  # a block of pasted code
_WITHOUT_MEANING = SAYS_NOTHING | _BESIDE_OTHERS | _PRECEDING | STOP_WORDS
#: Scripts that put no spaces between words.
_UNSPACED = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
#: The most words of a short order, or letters in scripts without spaces.
_LONGEST_ORDER, _LONGEST_ORDER_IN_LETTERS = 8, 16
_FEWEST = 2  # words with a meaning of their own that make a prompt more than about the work
#: The same in scripts without spaces, where several words form one run of letters.
_WORD_RUN = (
    "(?:好的?|是的?|对的?|對的?|嗯|不是?|没有|谢谢你?|謝謝|多谢|感谢|继续吧?|繼續|请|請|可以|行|没问题|你好|"
    "明白了?|知道了?|下一步|はい|ええ|うん|いいえ|ありがとう|ございます|ございました|続けて|ください|下さい|"
    "お願いします|了解|です|わかりました|次へ?)+"
)


def asks_nothing(text: str) -> bool:
    """Return whether a text contains nothing to search for: ``ok``, ``yes, do it``, ``/clear``.

    Without a question mark or a question word, the same holds for several function words, such as
    ``do that``. A single one may be a name: CI, OS.
    """
    text = text.strip().casefold()
    if _is_command(text):
        return True
    words, has_mark = _WORD.findall(text), has_question_mark(text)
    if has_mark and len(words) == 1 and words[0] in _ALSO_NAMES:
        return False
    rest = [word for word in words if word not in SAYS_NOTHING and not _is_word_run(word)]
    if not rest:
        return True
    if has_mark or len(words) == 1:
        return False
    rest = [word for word in rest if word not in _BESIDE_OTHERS]
    language = "en" if STOP_WORDS.issuperset(rest) else language_of_function_words(rest)
    return language is not None and not _has_question_word(rest, language)


def is_question(text: str) -> bool:
    """Return whether a text asks or is a request, as ``I need the address``."""
    return _asks(text) or _after_request(text) is not None


def _asks(text: str) -> bool:
    """Return whether a text asks: by a question mark, or by the word that it begins with."""
    if has_question_mark(text) or _contains(_ASKING, text):
        return True
    words = _WORD.findall(text[:_BEGINNING].casefold())
    skipped = SAYS_NOTHING | _PRECEDING
    first = next((word for word in words if word not in skipped), "")
    begins = (_FIRST_OTHERS, *_QUESTION_WORDS.values(), *_FIRST_WORDS.values())
    return any(first in beginnings for beginnings in begins)


def _after_request(text: str) -> list[str] | None:
    """Return the words after a request, which only words that say nothing may precede."""
    skipped = SAYS_NOTHING | _PRECEDING
    beginning = text[:_BEGINNING].casefold().replace("\u2019", "'")
    words = list(dropwhile(skipped.__contains__, _REQUEST_WORD.findall(beginning)))
    for count in range(1, _LONGEST_REQUEST + 1):
        if " ".join(words[:count]) in _REQUESTS:
            rest = words[count:]
            return None if rest and rest[0] in _ORDERING else rest
    return None


def is_about_the_work(text: str) -> bool:
    """Return whether a prompt in a session needs only that: ``revert it``, ``no, the other one``.

    It asks nothing, and begins with consent or refusal, or has at most one word with a meaning of
    its own outside of pasted code; a request has none.
    """
    if _asks(text):
        return False
    requested = _after_request(text)
    if requested is not None:
        return not _own_words(requested)
    words = _WORD.findall(_FENCED.sub("", text)[:_BEGINNING].casefold())
    first = next((word for word in words if word not in _PRECEDING), "ok")
    own = _own_words(words)
    few = len(own) < _FEWEST and not _contains(_UNSPACED, text)
    agrees = first in SAYS_NOTHING or _is_word_run(first)
    return agrees or few or not own


def is_order(text: str) -> bool:
    """Return whether a text may be an order about the work at hand: short, and without a fact."""
    words = _WORD.findall(text[:_BEGINNING])
    letters = _LONGEST_ORDER_IN_LETTERS if _contains(_UNSPACED, text) else _BEGINNING
    is_short = len(words) <= _LONGEST_ORDER and len(text) <= letters
    return is_short and not _asks(text) and not any(map(str.isdigit, text))


def _own_words(words: Iterable[str]) -> set[str]:
    return {
        word
        for word in words
        if not (word in _WITHOUT_MEANING or is_function_word(word) or _is_word_run(word))
    }


def _contains(pattern: str, text: str) -> bool:
    """Return whether a text contains a match of a pattern of letters beyond ASCII."""
    return not text.isascii() and re.search(pattern, text) is not None


def _is_word_run(word: str) -> bool:
    return not word.isascii() and re.fullmatch(_WORD_RUN, word) is not None


def _is_command(text: str) -> bool:
    """Return whether a text is a command of a client: a known one, or any that stands alone."""
    command = _COMMAND.match(text)
    if command is None:
        return False
    name = command[1]
    return command.end() == len(text) or name in _COMMANDS or name.startswith(_SERVER_COMMAND)


def _has_question_word(words: list[str], language: str) -> bool:
    if not _QUESTION_WORDS[language].isdisjoint(words):
        return True
    first = next((word for word in words if word not in _JOINING), "")
    return first in _FIRST_WORDS[language]
