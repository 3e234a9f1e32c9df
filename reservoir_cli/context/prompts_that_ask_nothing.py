"""Recognise prompts for which nothing is recalled: consent, thanks, commands of clients. Pure."""
# ruff: noqa: RUF001, RUF003 - letters of other scripts

import re
from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile, product

from reservoir_cli.storage.search.fulltext import STOP_WORDS
from reservoir_cli.util.languages import (
    function_words,
    is_function_word,
    language_of_function_words,
)
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
_SIGN = r"[,.!;:\n\u2013\u3001\u3002\uff0c\uff01]|\s-\s"  # what ends a clause
#: A word of two or more characters: a single letter or digit picks an option.
_WORD = re.compile(r"[^\W_]{2,}")
_BEGINNING = 400  # how much of a prompt is read to tell what kind it is, in characters
#: Words of greeting, which may precede anything.
_GREETINGS = frozenset(
    "hi hello hey hallo moin servus bonjour salut coucou hola ciao buongiorno buonasera oi olá "
    "hoi goedemorgen goedemiddag goedenavond hej merhaba selam günaydın cześć siema привет "
    "здравствуй здравствуйте привіт".split()
)
#: Words of consent, refusal, thanks and continuation.
SAYS_NOTHING = _GREETINGS | frozenset(
    # English
    "ok okay kk yes yeah yep yup sure right correct no nope nah thanks thank thx ty please pls "
    "continue proceed go ahead next done great good nice cool perfect fine awesome excellent well "
    "stop wait bye lgtm agreed exactly again retry resume same sounds looks now "
    "alright understood cheers wonderful "
    # German
    "ja jo jep nein nee danke dankeschön bitte weiter gut genau stimmt richtig prima super toll "
    "klar passt los mach mache fertig tschüss einverstanden gerne gern vielen dank so "
    "jawohl nö perfekt verstanden egal wunderbar "
    # French
    "oui ouais non merci continuez continuer vas allez bien bon parfait accord daccord "
    "voilà exactement beaucoup plait plaît nickel impeccable génial entendu "
    "compris volontiers "
    # Spanish, Italian, Portuguese
    "sí si gracias vale bueno perfecto claro sigue continúa continua adelante favor listo "
    "muchas exacto genial dale sì grazie va bene avanti perfetto prego certo esatto ottimo "
    "sim obrigado obrigada perfeito beleza valeu ótimo venga entendido estupendo guay "
    "excelente exactamente accordo vai dai capito certamente benissimo perfettamente fantastico "
    "procedi inteso volentieri tá entendi blz combinado fechado prossiga "
    "continue exato "
    # Dutch, Swedish, Turkish
    "bedankt ga door verder goed precies nej tack fortsätt bra tak evet hay\u0131r tamam "
    "teşekkürler devam lütfen oké akkoord dankjewel begrepen mooi klopt inderdaad "
    "doei okej perfekt tackar precis javisst harika anladım peki "
    # Polish
    "nie dzięki dziękuję dalej dobrze proszę kontynuuj tak dobra lecimy świetnie jasne pewnie "
    "rozumiem zgoda oczywiście spoko doskonale "
    # Russian, Ukrainian, Korean
    "да нет спасибо продолжай продолжайте дальше хорошо ладно отлично ок давай пожалуйста верно "
    "точно понял поняла понятно ясно супер круто поехали прекрасно здорово согласен согласна "
    "конечно ага угу окей так ні дякую далі продовжуй добре "
    "зрозуміло чудово гаразд звісно "
    "네 아니요 감사합니다 고마워 고마워요 계속 계속해줘 좋아 좋아요 알겠습니다".split()
)
#: Those that mean consent or refusal whatever follows them; others do before a sign or another one:
#: "no, the other one", but "no funciona el servidor" and "same parser as before".
_CONSENT = frozenset(
    "ok okay kk yes yeah yep yup sure lgtm agreed alright continue proceed retry resume "
    "ja jo jep nein jawohl nö weiter einverstanden oui ouais continuez continuer sí vale continúa "
    "continua sì procedi beleza valeu prossiga oké fortsätt evet tamam devam kontynuuj "
    "да ладно ок окей ага угу продолжай продолжайте давай продовжуй "
    # Thanks
    "thanks thank thx ty danke dankeschön merci gracias grazie obrigado obrigada bedankt dankjewel "
    "tack teşekkürler dzięki dziękuję спасибо дякую".split()
)
#: Words of greetings by the time of day or week.
_TIMES_OF_GREETING = frozenset(
    "morning afternoon evening night weekend day everyone everybody all morgen abend tag nacht "
    "wochenende feierabend schönes schönen schöne guten gute zusammen alle bonne journée soirée "
    "nuit buenos buenas días tardes noches giornata serata bom boa dia noite "
    "tarde fijne fijn avond dag dzień dobry wieczór noc доброе добрый утро день вечер ночи "
    "спокойной god morgon kväll".split()
)
#: Words that say nothing beside others; one of them alone may be a name.
_BESIDE_OTHERS = _TIMES_OF_GREETING | frozenset(
    "dir euch ihnen alles sehr schön sieht aus jetzt es funktioniert klappt läuft klingt très me "
    "tout marche fonctionne va got it top legal класс está bien muy todo vamos sigan tutto posto "
    "mille molto muito mesmo pode seguir segue tudo certo je wel maar zo doe mee ziet eruit er "
    "uit mycket du bardzo wielkie porządku wygląda jest wszystko большое очень всё все дуже".split()
)
#: Laughter: haha, jajaja, kkkk, mdr, lol, ахаха.
_LAUGHTER = (
    r"a?([hj])([aei])(?:\1\2)+[hj]?|a+h(?:a+h+)+a*|k{3,}|(?:rs){2,}|lo+l+|lmao|rofl|p?t?mdr+|"
    "а?(?:х[аеи]){2,}х?|哈{2,}|笑+|ㅋ{2,}"
)
#: Questions for how somebody is, which are greetings; each ends a sentence.
_HOW_ARE_YOU = (
    r"(?:^|(?<=[\s,.!?¡¿！。、]))(?:how (?:are (?:you|things)(?: doing)?|is it going|do you do)|"
    r"how's it going|what's up|"
    r"(?:na,? )?wie (?:geht(?:'s| es)(?: (?:dir|euch|ihnen))?|läuft(?:'s| es))|alles gut|"
    r"comment (?:ça va|vas-tu|allez-vous|tu vas|vous allez)|ça va(?: bien)?|quoi de neuf|"
    r"¿?(?:qué tal(?: estás?| va)?|c[óo]mo (?:estás?|está usted|te va|va todo|va))|"
    r"come (?:va|stai|sta|state|ti va)|tutto bene|"
    r"como (?:vai|vais|está|você está)|tudo (?:bem|bom)(?: (?:com você|contigo))?|"
    r"hoe (?:gaat (?:het|ie)|gaat 't|is het)(?: (?:met )?(?:je|jou|jullie|u))?|alles goed|"
    r"hur (?:mår du|är läget|går det)|nasılsın(?:ız)?|ne haber|"
    r"jak (?:się (?:masz|macie|czujesz)|leci|tam|ci idzie)|co (?:słychać|u (?:ciebie|was))|"
    r"как (?:(?:твои |ваши )?дела|(?:ты|вы)|жизнь|поживае(?:шь|те)|настроение)|что нового|"
    r"як (?:справи|ти|ся маєш)|お?元気(?:です)?か?|調子はどう(?:ですか)?|你好吗|잘 지내(?:요|니)?)"
    r"(?:,? (?:today|heute|denn|so|aujourd'hui|hoy|oggi|hoje|vandaag|idag|dziś|dzisiaj|сегодня))?"
    r"\s*(?:[?!.,…？！。]+|$)"
)
#: Words that say nothing unless a question mark follows: then they are names, as of a language.
_ALSO_NAMES = frozenset(("go", "next", "nice", "super", "prima"))
#: Words of a question, by language, in any place.
_QUESTION_WORDS = {
    "en": frozenset("what why how who whom whose".split()),
    "de": frozenset(
        "warum wieso weshalb was wer wem wen wessen woher wohin womit wofür worüber worum woran "
        "worauf wozu".split()
    ),
    "fr": frozenset("pourquoi comment quoi combien quel quelle quels quelles lequel".split()),
    "es": frozenset("qué quién quiénes cómo cuándo cuál cuáles dónde cuánto cuánta".split()),
    "it": frozenset("cosa perché chi quale quali quanto quanta quanti quante".split()),
    "pt": frozenset("quem porque porquê quê qual quais quanto quanta quantos quantas".split()),
    "nl": frozenset("wat waarom hoe hoeveel waarmee waarover".split()),
    "sv": frozenset("vad varför hur vem vems vilken vilket vilka".split()),
    "pl": frozenset(
        "kto kogo komu czyj czyja czyje czego czemu dlaczego gdzie skąd dokąd ile ilu kiedy "
        "jaki jaka jakie jakiego jakiej jakim jaką jakich".split()
    ),
    "tr": frozenset("neden niçin nerede nereye nereden nasıl hangi kaç".split()),
    "ru": frozenset(
        "кто кого кому кем ком чего чему чём чей чья чьё чьи где куда откуда почему зачем сколько "
        "скольки какой какая какое какие какого какому каким каком какую каких".split()
    ),
    "uk": frozenset(
        "хто кого кому ким кім чого чому чим де куди звідки скільки коли який яка яке які якого "
        "якої якій якому яким яку яких".split()
    ),
}
#: Words that also join clauses: they ask at the beginning.
_FIRST_WORDS = {
    "en": frozenset("when where which".split()),
    "de": frozenset("wann wie wo welche welcher welches welchen welchem".split()),
    "fr": frozenset("quand que qu qui où est-ce".split()),
    "es": frozenset("que quien cuando como".split()),
    "it": frozenset("che come quando dove".split()),
    "pt": frozenset("que quando como onde".split()),
    "nl": frozenset("wanneer wie waar welke welk".split()),
    "sv": frozenset("när var".split()),
    "pl": frozenset("co czym jak który która które czy".split()),
    "tr": frozenset(),
    "ru": frozenset("что чем как когда".split()),
    "uk": frozenset("що як чи".split()),
}
#: Prepositions of two letters or more that may precede a question word at the beginning.
_PREPOSITIONS = {
    "en": "to with for from in on at by about of since until",
    "de": "an auf aus bei bis durch für gegen in mit nach seit über um unter von vor zu ab zum",
    "fr": "de avec pour chez dans sur par depuis en vers sous jusqu",
    "es": "de con en para desde hasta por sobre",
    "it": "di da con in su per tra fra",
    "pt": "de do da com em para sobre desde até por no na",
    "nl": "aan bij in met naar om op over per sinds tot uit van vanaf voor",
    "sv": "på av med till från om för",
    "pl": "na do od po za pod nad przy przez dla ze we bez przed",
    "ru": "на во со до от из по за под над при про для без об через перед около",
    "uk": "на до від із за по під над при про для без через перед",
}
#: Question words that may follow them, beside those above, and beginnings that rather join clauses.
_AFTER_PREPOSITIONS = {
    "en": _FIRST_WORDS["en"],
    "de": _FIRST_WORDS["de"],
    "fr": frozenset("qui quand où".split()),
    "es": frozenset("que quien cuando donde cual".split()),
    "it": frozenset("che dove cui".split()),
    "pt": frozenset("que quando onde".split()),
    "nl": _FIRST_WORDS["nl"],
    "sv": _FIRST_WORDS["sv"],
    "pl": frozenset("co czym której którym którego który którą których".split()),
    "ru": frozenset("что чем когда котором который которого которой".split()),
    "uk": frozenset(("що",)),
}
_JOINING_PAIRS = re.compile("(?:in|at) which (?:case|point)|para que |per quanto riguarda")
#: Verbs that begin a question, or are in a statement.
_FIRST_OTHERS = frozenset(
    "is are was were does did can could should would will has have hasn isn aren "
    "ist sind war waren hat haben hatte kann können soll sollen gibt est sont avons avez "
    "hast habt kannst könnt weißt sabes tienes tem hai sai weet masz "
    "hay tenemos abbiamo temos is zijn kunnen hebben heb hebt heeft".split()
)
#: The same in scripts without spaces. Patterns beyond ASCII are compiled for texts beyond ASCII.
_ASKING = (
    "什么|甚么|什麼|哪|谁|誰|怎么|怎麼|为什么|為什麼|吗|嗎|多少|几[个点]|何|どこ|いつ|なぜ|どう|"
    "뭐|무엇|어디|언제|왜|어떻게|"
    # Not to be told later, as in "tell me once it is done", nor "I need you to do it".
    "(?<![后後])告[诉訴]我|提醒我|我(?:需要(?![你您])|忘了)|(?<!たら)教えて|思い出せ|忘れた|"
    "思い出させて|(?<!バグを)(?<!エラーを)(?<!原因を)(?:探して|見つけて)(?!直|修)|"
    r"(?<!면)(?<!면 )알려|기억이 안|^\w+ ли\b|(?:は|について|呢)[。？?]?$"
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
        _phrases("dis donne rappelle redis", "moi nous"),
        _phrases("je", "cherche", "le la les notre nos mon ma mes"),
        _phrases("j'ai", "besoin oublié", "du de la le les notre"),
        # Spanish
        _phrases("dime dinos dame danos recuérdame recuérdanos"),
        _phrases("necesito necesitamos busco", "el la los las nuestro nuestra mi mis"),
        _phrases("me nos", "recuerdas dices"),
        _phrases("no", "recuerdo", "el la los las nuestro nuestra mi mis"),
        # Italian, Portuguese
        _phrases("dimmi dicci dammi ricordami ricordaci"),
        _phrases("mi ci", "ricordi ridici dici dai sai"),
        _phrases("puoi", "dirmi ricordarmi darmi"),
        _phrases("mi ci", "serve servono", "il lo la i gli le"),
        _phrases("ho", "bisogno", "del dello della dei delle"),
        _phrases("diga-me diz-me lembra-me lembre-me recorda-me relembra-me conta-me dê-me dá-me"),
        _phrases("me", "diga diz lembra lembre recorda relembra conta fala passa dê dá"),
        _phrases("preciso precisamos", "do da dos das"),
        # Dutch
        _phrases("zeg geef vertel herinner", "me mij ons"),
        _phrases("ik", "zoek", "de het ons onze mijn"),
        # Swedish, Polish, Turkish
        _phrases("påminn berätta ge", "mig oss"),
        _phrases("säg"),
        _phrases("przypomnij powiedz podaj"),
        _phrases("z o", "kim"),
        _phrases("nie", "pamiętam"),
        _phrases("söyle hatırlat"),
        # Russian, Ukrainian
        _phrases("напомни напомните подскажи подскажите скажи скажите назови назовите"),
        _phrases("мне нам", "нужен нужна нужны"),
        _phrases("я", "не", "помню"),
        _phrases("нагадай нагадайте скажи скажіть підкажи підкажіть"),
        _phrases("мені нам", "потрібен потрібна потрібні"),
    )
)
#: Verbs of prompts that ask to look something up, unless it is a fault or an order follows.
_FINDING = frozenset(
    "find such suche finde trouve trouvez retrouve cherche busca encuentra trova cerca acha "
    "procura encontra zoek vind hitta znajdź poszukaj найди найдите отыщи знайди".split()
)
_OTHER_MEANING = frozenset("a an as de".split())  # after such a verb: "such a day", "cerca de"
_NOT_LOOKED_UP = frozenset(
    "and then all every und dann et puis y luego e poi en i oraz potem и затем та och ve "
    "bug bugs error errors issue issues cause fehler ursache erreur bogue causa errore erro fout "
    "oorzaak błąd błędy przyczynę ошибку ошибки баг причину помилку fel felet".split()
)
#: What follows such a beginning in an order to do something, or to be told of it later.
_ORDERING = frozenset(
    "once to bescheid wenn sobald daran dès cuando als zodra eraan dat żeby чтобы щоб att".split()
)
_INFINITIVE = re.compile(
    "(?:(?:mi|nam|мне|нам|мені) )?(?:(?:d[aei] |d'|om )[^\\W_]+(?:[aeiê]r|re)|"
    "[^\\W_]{2,}(?:[aiê]r|ть|ться|ти|ć))(?: |$)"
)
_LONGEST_REQUEST = 4
_REQUEST_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
#: Words that join a question to what was said before, or only precede it.
_JOINING = frozenset(
    "and but so und aber et mais y pero e ed ma mas en maar och men ale а и но але".split()
)
_PRECEDING = _JOINING | frozenset(
    "pues wow hm hmm hmmm mm mh oh ah uh um äh ähm then dann also".split()
)
_FENCED = re.compile(r"(?ms)^```.*?(?:^```[ \t]*$|\Z)")  # a block of pasted code
_WITHOUT_MEANING = SAYS_NOTHING | _BESIDE_OTHERS | _PRECEDING | STOP_WORDS
#: Scripts that put no spaces between words.
_UNSPACED = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
#: The most words of a short order, or letters in scripts without spaces.
_LONGEST_ORDER, _LONGEST_ORDER_IN_LETTERS = 8, 16
_FEWEST = 2  # words with a meaning of their own that make a prompt more than about the work
#: The same in scripts without spaces, where several words form one run of letters.
_RUN_WORDS = frozenset(
    "好 好的 是 是的 对 对的 對 對的 嗯 不 不是 没有 谢谢 谢谢你 謝謝 多谢 感谢 继续 继续吧 繼續 "
    "请 請 可以 行 没问题 你好 "
    "明白 明白了 知道 知道了 下一步 呢 はい ええ うん いいえ ありがとう ございます ございました "
    "続けて ください 下さい "
    "お願いします 了解 です わかりました 次 次へ いや 違い 違います 違う もう一度 もう1度 "
    "もう一回 やり直し やり直して 完璧 最高 "
    "いい ね よ なるほど わかった 分かった 分かりました 大丈夫 お願い それで そうです よかった "
    "進めて 行こう オッケー どうも "
    "おはよう こんにちは こんばんは おやすみ なさい お疲れ様 でした した".split()
)
_LONGEST_RUN_WORD = max(map(len, _RUN_WORDS))
_LONGEST_RUN = 100  # longer ones are no consent, in characters
#: The end of an order in Japanese, and its words that are not in hiragana.
_ORDER_END = "[てで](?:ください|下さい|くれ)?[。！!]?$"
_NO_HIRAGANA, _SAME_AGAIN = "[^\\W_\u3040-\u309f]+", "同じように|やり直|もう[一1]度"


def asks_nothing(text: str) -> bool:
    """Return whether a text contains nothing to search for: ``ok``, ``yes, do it``, ``/clear``.

    Without a question mark or a question word, the same holds for several function words, such as
    ``do that``. A single one may be a name: CI, OS.
    """
    text = text.strip().casefold()
    if _is_command(text):
        return True
    if len(text) <= _BEGINNING:
        text = re.sub(_HOW_ARE_YOU, " ", text.replace("\u2019", "'"))
    words, has_mark = _WORD.findall(text), has_question_mark(text)
    if has_mark and len(words) == 1 and words[0] in _ALSO_NAMES:
        return False
    rest = [word for word in dict.fromkeys(words) if not _says_nothing(word)]
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
    words = _WORD.findall(_after_greeting(text[:_BEGINNING].casefold()))
    rest = list(dropwhile(_precedes, words))
    first, second = (*rest, "", "")[:2]
    begins = (_FIRST_OTHERS, *_QUESTION_WORDS.values(), *_FIRST_WORDS.values())
    if any(first in beginnings for beginnings in begins):
        return True
    return not _JOINING_PAIRS.match(" ".join(rest[:3])) and any(
        first in prepositions.split()
        and (second in _QUESTION_WORDS[language] or second in _AFTER_PREPOSITIONS[language])
        for language, prepositions in _PREPOSITIONS.items()
    )


def _after_request(text: str) -> list[str] | None:
    """Return the words after a request, which only words that say nothing may precede."""
    beginning = text[:_BEGINNING].casefold().replace("\u2019", "'")
    words = list(dropwhile(_precedes, _REQUEST_WORD.findall(beginning)))
    if words and words[0] in _FINDING and _OTHER_MEANING.isdisjoint(words[1:2]):
        return words[1:] if _NOT_LOOKED_UP.isdisjoint([*words, *_WORD.findall(beginning)]) else None
    for count in range(1, _LONGEST_REQUEST + 1):
        if " ".join(words[:count]) in _REQUESTS:
            rest = list(dropwhile(_precedes, words[count:]))
            to_do = count <= 2 and _INFINITIVE.match(" ".join(rest[:3]))
            return None if to_do or (rest and rest[0] in _ORDERING) else rest
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
        return not _own_words(requested, text)
    prompt = _after_greeting(_FENCED.sub("", text)[:_BEGINNING].casefold())
    words = _WORD.findall(prompt)
    own = _own_words(words, text)
    few = len(own) < _FEWEST and not _contains(_UNSPACED, text)
    return few or not own or _is_japanese_order(text.strip()) or _begins_with_consent(prompt)


def _begins_with_consent(prompt: str) -> bool:
    """Return whether a prompt begins with consent or refusal, and not with a word alike."""
    first = next((word for word in _WORD.findall(prompt) if word not in _PRECEDING), "ok")
    if first in _CONSENT:
        return True
    clause = re.split(_SIGN, prompt, maxsplit=1)[0].strip()
    return bool(clause) and _are_courtesies(_WORD.findall(clause))


def _after_greeting(prompt: str) -> str:
    """Return a prompt without the greeting or thanks before it."""
    clause, *rest = re.split(_SIGN, prompt, maxsplit=1)
    words = _WORD.findall(clause)
    greets = words and (words[0] in _GREETINGS or not _TIMES_OF_GREETING.isdisjoint(words))
    return rest[0] if rest and greets and _are_courtesies(words) else prompt


def is_order(text: str) -> bool:
    """Return whether a text may be an order about the work at hand.

    It is short, asks nothing, and has no number nor a verb of statements, such as ``is``.
    """
    words = _WORD.findall(text[:_BEGINNING])
    letters = _LONGEST_ORDER_IN_LETTERS if _contains(_UNSPACED, text) else _BEGINNING
    is_short = len(words) <= _LONGEST_ORDER and len(text) <= letters
    states = not _FIRST_OTHERS.isdisjoint(word.casefold() for word in words)
    return is_short and not states and not _asks(text) and not any(map(str.isdigit, text))


def _own_words(words: Iterable[str], text: str) -> set[str]:
    """Return those of the words of a text that have a meaning of their own."""
    common = _WITHOUT_MEANING | function_words(text)
    return {
        word
        for word in words
        if not (word in common or is_function_word(word) or _says_nothing(word))
    }


def _is_japanese_order(text: str) -> bool:
    """Return whether a text orders the same again, or names at most an object and a verb."""
    if not _contains(_ORDER_END, text):
        return False
    return _contains(_SAME_AGAIN, text) or len(re.findall(_NO_HIRAGANA, text)) <= _FEWEST


def _says_nothing(word: str) -> bool:
    return word in SAYS_NOTHING or _is_word_run(word) or bool(re.fullmatch(_LAUGHTER, word))


def _are_courtesies(words: Iterable[str]) -> bool:
    return all(word in _BESIDE_OTHERS or _precedes(word) for word in words)


def _precedes(word: str) -> bool:
    return word in _PRECEDING or _says_nothing(word)


def _contains(pattern: str, text: str) -> bool:
    """Return whether a text contains a match of a pattern of letters beyond ASCII."""
    return not text.isascii() and re.search(pattern, text) is not None


def _is_word_run(word: str) -> bool:
    """Return whether a run of letters consists of words that say nothing."""
    if word.isascii() or len(word) > _LONGEST_RUN:
        return False
    ends = {0}  # a pattern that repeats words which begin alike would take exponential time
    for end in range(1, len(word) + 1):
        starts = range(max(0, end - _LONGEST_RUN_WORD), end)
        if any(start in ends and word[start:end] in _RUN_WORDS for start in starts):
            ends.add(end)
    return len(word) in ends


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
