"""Guess the language of a text by its function words, or by its script."""
# ruff: noqa: RUF001 - letters of other scripts

import re
from collections.abc import Collection

#: The function words of each language, in lower case: articles, pronouns, question words,
#: prepositions, conjunctions, auxiliary verbs, adverbs of place, time and degree.
_FUNCTION_WORDS = {
    "en": "a about am an and any are as at be been being but by can could did do does done for "
    "from had has have having he her him his how i if in into is it its many may me might "
    "more most much my no not of on or our she should so some than that the their them "
    "then there these they this those to was we were what when where which who whom whose "
    "why will with would you your",
    "de": "der die das den dem des ein eine einen einem einer eines kein keine keinen keinem "
    "keiner ich du er sie es wir ihr mich mir dich dir ihn ihm ihnen uns euch sich man "
    "mein meine meinen meinem meiner dein deine deinen deinem deiner sein seine seinen "
    "seinem seiner ihre ihren ihrem ihrer unser unsere unseren unserem unserer euer eure "
    "euren eurem dies diese dieser dieses diesen diesem jene jener jenes jeder jede jedes "
    "jeden jedem alle alles was wer wen wem wessen wann wo wohin woher wie warum wieso "
    "weshalb welche welcher welches welchen welchem womit wofür worüber worum wovon woran "
    "worauf wozu wobei wodurch an am auf aus bei beim bis durch für fuer gegen hinter im "
    "in ins mit nach neben ohne seit über ueber um unter vom von vor während wegen zu zum "
    "zur zwischen und oder aber denn weil dass daß ob wenn als also doch sondern sowie bin "
    "bist ist sind seid war warst waren wart gewesen habe hast hat haben habt hatte "
    "hattest hatten hattet gehabt werde wirst wird werden werdet wurde wurden worden kann "
    "kannst können könnt konnte konnten könnte könnten muss musst müssen musste mussten "
    "soll sollst sollen sollte sollten will willst wollen wollte wollten darf darfst "
    "dürfen durfte mag möchte möchten würde würden gibt gab nicht auch noch nur schon mal "
    "da dort hier so sehr dann jetzt nun wieder ja nein etwa eigentlich dabei dafür damit "
    "daran darauf darüber davon dazu",
    "fr": "le la les l un une des du de d au aux je j tu il elle on nous vous ils elles me m te "
    "t se s moi toi lui leur leurs eux y en ça c ce cela ceci mon ma mes ton ta tes son sa "
    "ses notre nos votre vos cet cette ces celui celle ceux celles que qu qui quoi dont où "
    "quand comment combien pourquoi quel quelle quels quelles lequel laquelle lesquels "
    "lesquelles à dans par pour sur sous avec sans chez vers entre depuis pendant avant "
    "après contre jusqu selon et ou mais donc ni si comme parce puisque lorsque alors suis "
    "es est sommes êtes sont étais était étions étaient été être sera serait soit ai as a "
    "avons avez ont avais avait avions avaient aurait avoir eu peut peux pouvez pouvons "
    "pouvait peuvent dois doit devons devez doivent faut va vais vas allons allez vont "
    "veut veux voulez fait ne n pas plus très aussi déjà encore bien tout tous toute "
    "toutes même jamais rien là ici",
    "es": "el la los las lo un una unos unas al del yo tú él ella ello nosotros nosotras "
    "vosotros ellos ellas usted ustedes me te se nos os le les mí ti sí conmigo contigo mi "
    "mis tu tus su sus nuestro nuestra nuestros nuestras vuestro vuestra este esta esto "
    "estos estas ese esa eso esos esas aquel aquella aquello que qué quien quién quienes "
    "quiénes cual cuál cuales cuáles cuando cuándo cuanto cuánto cuánta cuántos cuántas "
    "donde dónde adónde como cómo cuyo porqué a ante bajo con contra de desde durante en "
    "entre hacia hasta para por según sin sobre tras y e o u pero sino ni porque pues "
    "aunque si mientras soy eres es somos sois son era eras éramos eran fui fue fuimos "
    "fueron sido ser será sería sea estoy estás está estamos estáis están estaba estaban "
    "estuvo estado estar he has ha hemos habéis han había habían hay hubo haber tengo "
    "tienes tiene tenemos tenéis tienen tenía tenían tuvo puedo puedes puede podemos "
    "pueden podía debo debe debemos deben voy vas va vamos van iba hice hizo hicimos dije "
    "dijiste dijo dijimos hablamos no ya también tampoco muy más tan así aún todavía",
    "it": "il lo la gli le un uno una l i al allo alla ai agli alle all del dello della dei "
    "degli delle dell dal dallo dalla dai dagli dalle dall nel nello nella nei negli nelle "
    "nell sul sullo sulla sui sugli sulle sull col io tu lui lei noi voi loro mi ti si ci "
    "vi me te ne li mio mia miei mie tuo tua tuoi tue suo sua suoi sue nostro nostra "
    "nostri nostre vostro vostra questo questa questi queste quest quello quella quelli "
    "quelle quel quei quegli quell ciò che cosa cos chi cui quale quali qual quando quanto "
    "quanta quanti quante dove dov come com perché di a da in con su per tra fra senza "
    "fino verso e ed o oppure ma però se quindi anche né sono sei è siamo siete era ero "
    "eri eravamo erano fu furono essere sarà sarebbe sia ho hai ha abbiamo avete hanno "
    "avevo avevi aveva avevamo avevano avere avrà posso puoi può possiamo potete possono "
    "devo devi deve dobbiamo devono vuole vuoi va vai vanno fa non più già ancora molto "
    "così poi pure",
    "pt": "o a os as um uma uns umas ao aos à às do da dos das no na nos nas dum duma num numa "
    "pelo pela pelos pelas eu tu ele ela nós vós eles elas você vocês me te se lhe lhes "
    "mim ti si comigo contigo conosco connosco meu minha meus minhas teu tua teus tuas seu "
    "sua seus suas nosso nossa nossos nossas dele dela deles delas este esta estes estas "
    "isto esse essa esses essas isso aquele aquela aquilo neste nesta nesse nessa deste "
    "desta desse que quê quem qual quais quando quanto quanta quantos quantas onde aonde "
    "como porque porquê de em por para pra com sem sob sobre até desde entre contra após e "
    "ou mas nem pois porém sou és é somos são era eram éramos fui foi fomos foram sido ser "
    "será seria seja estou estás está estamos estão estava estavam esteve tenho tens tem "
    "temos têm tinha tinham tive teve ter há havia posso podes pode podemos podem devo "
    "deve devemos vou vais vai vamos vão ia faz fiz fez não já também ainda muito mais tão "
    "assim só lá cá aqui",
    "nl": "de het een der des geen ik jij je u hij zij ze wij we jullie mij me jou hem haar ons "
    "hen hun zich men mijn jouw uw zijn onze deze dit die dat elk elke alle alles wat wie "
    "wiens waar waarom waarin waarop waarmee waarvoor waarover waarheen wanneer hoe "
    "hoeveel welk welke aan achter bij binnen boven door in met na naar naast om onder op "
    "over per sinds te tegen ten tot tussen uit van vanaf via voor zonder en of maar want "
    "omdat als dan dus terwijl toen is bent was waren geweest heb hebt heeft hebben had "
    "hadden gehad word wordt worden werd werden kan kun kunt kunnen kon konden moet moeten "
    "moest mag mogen wil wilt willen wilde wilden zal zullen zou zouden ging gaat gaan ga "
    "doe doet deed niet ook nog al alweer er hier daar nu zo wel eens toch heel zeer",
    "sv": "en ett den det de och att som är var vara varit i på för av med till från om vid hos "
    "under över efter före utan mellan mot inte men eller när hur vad vem vems vilken "
    "vilket vilka varför vart jag du han hon vi ni mig dig honom henne oss er dem sig min "
    "mitt mina din ditt dina sin sitt sina hans hennes vår vårt våra deras denna detta "
    "dessa har hade haft ska skulle kan kunde vill ville måste blir blev bli finns fanns "
    "också så då nu här där än redan bara",
    "pl": "i a oraz lub albo ale więc że żeby aby bo gdy jeśli czy ja ty on ona ono my wy oni "
    "one mnie mi mną ciebie cię ci tobie jego go jemu mu jej ją nią nim nam nas nami wam "
    "was ich im nich się siebie sobie mój moja moje mojego mojej moim moją twój twoja "
    "twoje twojego swój swoja swoje nasz nasza nasze naszego naszej wasz wasza ten ta to "
    "tego tej temu tym tę tą te tych tymi tamten tamta tamto kto kogo komu kim co czego "
    "czemu czym gdzie kiedy jak skąd dokąd dlaczego ile ilu iloma czyj czyja czyje jaki "
    "jaka jakie jakiego jakiej jakim jaką jakich który która które którego której którym "
    "którą których w we z ze na do od po za u o pod nad przed przy przez dla bez między ku "
    "jest są być był była było byli były będę będzie będą mam masz ma mamy macie mają miał "
    "miała mieli mieć mogę może możesz możemy mogą można trzeba jestem jesteś jesteśmy nie "
    "tak już jeszcze też także tylko tu tam teraz bardzo",
    "tr": "ve veya ama fakat çünkü bir bu şu ben sen biz siz onlar bana sana ona bize beni seni "
    "onu benim senin onun bizim ne neden niçin niye nerede nereye nereden nasıl hangi kim "
    "kime kimin kaç mı mi mu mü için ile gibi kadar göre sonra önce değil var yok çok daha "
    "en her olarak oldu olan",
    "ru": "и а но или да что чтобы если как так когда пока хотя либо же ли бы ни то я ты он она "
    "оно мы вы они меня мне мной тебя тебе тобой его ему им него нему ним её ее ей неё нее "
    "ней нас нам нами вас вам вами их них ими ними себя себе собой мой моя моё мое мои "
    "моего моей моему моим мою моих твой твоя твоё твои твоего твоей твою свой своя своё "
    "свои своего своей свою своих наш наша наше наши нашего нашей нашу наших ваш ваша ваше "
    "ваши вашего вашей вашу этот эта это эти этого этой этому этим эту этих тот та те того "
    "той тому тем ту тех весь вся всё все всего всей всех кто кого кому кем ком чего чему "
    "чем чём чей чья чьё чьи где куда откуда почему зачем сколько скольки какой какая "
    "какое какие какого какому каким каком какую каких который которая которое которые "
    "которого которой которому котором которую которых в во на с со к ко у о об обо от до "
    "из за по под над при про для без через между перед после около был была было были "
    "быть есть будет будут буду будем можно нужно надо нет может мог могу можем не уже ещё "
    "еще тоже также только вот там тут здесь теперь сейчас очень даже",
    "uk": "і й та а але або чи що щоб якщо як так коли поки ж б би я ти він вона воно ми ви вони "
    "мене мені мною тебе тобі його йому ним її їй нею нас нам вас вам їх них ними себе "
    "собі мій моя моє мої мого моєї твій твоя твоє твої свій своя своє свої наш наша наше "
    "наші ваш ваша ваше ваші цей ця це ці цього цієї цьому тій той те ті того весь вся все "
    "всі хто кого кому ким кім чого чому чим де куди звідки скільки який яка яке які якого "
    "якої якій якому яким яку яких у в на з із зі до від о об за по під над при про для "
    "без через між перед після біля був була було були бути є буде будуть можна треба може "
    "не ні вже ще теж також тільки тут там тепер зараз дуже",
}
#: Those that are also English, names, or words with a meaning in another language: they do not show
#: their language, and are function words only in texts that other words show to be in it.
_AMBIGUOUS = frozenset(
    "a c d do i j l m me n on s t to ale all also ante ben bent bin biz co col cos dan deed "
    "dell dies dig din dit doe dont door ed ela ella er fa fait fez fra ga go hai han hans har "
    "hem hen hon hun ia io ins kim kun lei li lub ma mag mal mam man mas med men mes mia mie "
    "min mina mir mis mot mu nad nam ne nun nu ob od one oni ono over par plus po pod poi "
    "pure quest redan sa sana sans sea sein seine sen ser sera ses sig sin sina sob son sou "
    "sous soy sue sui sus ta tam tan te ten tens ter tes till tot tout tra tue ty under uno va "
    "var vara vas ve vers verso vi via vid vill ville vos want wart wen wil word ya ze zo".split()
)
_WORDS = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
ENGLISH_FUNCTION_WORDS = _WORDS["en"]
#: The words that show a language; English ones are in doubt English.
_SIGNS = {name: words - _AMBIGUOUS for name, words in _WORDS.items()}
_SIGNS["en"] = ENGLISH_FUNCTION_WORDS - {"a", "me"}
#: The English names of languages that are recognised.
LANGUAGES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
    "sv": "Swedish",
    "pl": "Polish",
    "tr": "Turkish",
    "ru": "Russian",
    "uk": "Ukrainian",
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
    "sv": "jag mig min mitt mina",
    "pl": "ja mnie mi mną mój moja moje mojego mojej moim moją",
    "tr": "ben bana beni benim",
    "ru": "я меня мне мной мой моя моё мое мои моего моей моему моим мою моих",
    "uk": "я мене мені мною мій моя моє мої мого моєї",
}
_FIRST_PERSON = {
    language: frozenset(words.split()) for language, words in _FIRST_PERSON_WORDS.items()
}
# Not compiled here: most commands never guess a language.
_WORD, _CHINESE, _KANA = r"[^\W\d_]+", "[\u3400-\u4dbf\u4e00-\u9fff]", "[\u3040-\u30ff]"
_FIRST_PERSON_CHINESE = "我(?!们|們)"
#: A word after another, with the last letter of that; and polite words with a capital letter.
_FOLLOWING = r"(?<=([^\W\d_]) )([^\W\d_]{2,})"
_POLITE = frozenset("Sie Ihnen Ihr Ihre Ihrem Ihren Ihrer Lei Usted Вы Вас Вам Ваш".split())
_LATIN_END = "\u024f"
_MOST_WORDS = 200  #: Only this many words of a text are examined.


def guess_language(text: str) -> str | None:
    """Return the language whose function words are most frequent in a text, such as ``de``.

    :returns: ``None`` if unclear, ``zh`` and ``ja`` by their scripts, ``other`` for other scripts
        without known words.
    """
    words = [word.lower() for word in re.findall(_WORD, text[: 20 * _MOST_WORDS])[:_MOST_WORDS]]
    if not words:
        return None
    foreign = [word for word in words if word[0] > _LATIN_END]
    is_foreign = 3 * len(foreign) > len(words)
    if is_foreign:
        letters = "".join(foreign)
        if re.search(_KANA, letters):
            return "ja"
        if re.search(_CHINESE, letters):
            return "zh"
    counts = {language: sum(word in signs for word in words) for language, signs in _SIGNS.items()}
    most = max(counts.values())
    best = [language for language, count in counts.items() if count == most]
    if most and len(best) == 1:
        return best[0]
    return "other" if is_foreign else None


def is_about_speaker(text: str) -> bool:
    """Return whether a question is about its speaker ("my", "I"); if in doubt, by English words."""
    language = guess_language(text) or "en"
    if language == "zh":
        return bool(re.search(_FIRST_PERSON_CHINESE, text))
    pronouns = _FIRST_PERSON.get(language)
    return pronouns is None or not pronouns.isdisjoint(re.findall(_WORD, text.lower()))


def function_words(text: str) -> frozenset[str]:
    """Return the function words, in lower case, of the language of a text.

    Those that the text has as a name, with a capital letter inside a sentence, are left out.
    """
    words = _WORDS.get(str(guess_language(text)), frozenset())
    pairs = re.findall(_FOLLOWING, text) if words else []
    names = [word for last, word in pairs if word.istitle() and last.islower()]
    return words.difference(name.lower() for name in names if name not in _POLITE)


def foreign_function_words(text: str) -> list[str]:
    """Return the words of a text that are common in its language, unless that is English."""
    if guess_language(text) == "en":
        return []
    common = function_words(text)
    return [word for word in dict.fromkeys(re.findall(_WORD, text.lower())) if word in common]


def is_function_word(word: str) -> bool:
    """Return whether a word, in lower case, is a function word, and has no meaning elsewhere."""
    return any(word in signs for signs in _SIGNS.values())


def language_of_function_words(words: Collection[str]) -> str | None:
    """Return the language in which all words, in lower case, are such words, if there is one."""
    if _AMBIGUOUS.issuperset(words):
        return None
    return next((name for name, usual in _WORDS.items() if usual.issuperset(words)), None)
