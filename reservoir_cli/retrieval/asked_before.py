"""Find earlier askings of a question: those whose replies say nothing, and the newest answer.

An asking without an answer contains every word of the question and nothing else, so it would rank
before the messages that answer it, which need not contain any word of their question. A reply is
empty if it says nothing that its question does not say.
"""
# ruff: noqa: RUF001 - letters and signs of other scripts

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from reservoir_cli.messages import Role, Scope, StoredMessage
from reservoir_cli.retrieval.ranking import Echoes
from reservoir_cli.retrieval.sessions import Positions, Sessions
from reservoir_cli.storage.search.candidates import Candidates
from reservoir_cli.storage.search.fulltext import (
    STOP_WORDS,
    count_terms,
    searched_text,
    without_ending,
)
from reservoir_cli.storage.store import Store
from reservoir_cli.util.languages import language_of_function_words
from reservoir_cli.util.unicode_text import has_question_mark

#: A message is read if it has this share of the question's stems and this cosine, or the second
#: cosine alone, and is not much longer than the question.
_SHARE, _NEAR, _SAME = 0.5, 0.5, 0.85
_LENGTH_FACTOR, _LENGTH_MORE = 2, 12
#: Of the nearest such messages so many are read, and if one of them repeats the question, more.
_FIRST_READ, _READ = 12, 500
_REPLY_READ = 2_000  # how much of a reply is compared, in characters
_COMPARED = 12  # the newest different answers, which an older one may equal
#: Messages read after a question for its reply, and after one that begins with calls of tools.
_REPLIES, _STEPS = 2, 16
#: The share of the question's words that a repetition contains; one that adds no word, or some.
_SUBSET, _REPEATED = 0.5, 0.65
_LEAD = 6  # the most content words before a colon that only lead to the question after it
_TOLD = 3  # content words of a statement that may be an answer
_TOLD_BY_NAME = 2  # the same with a name, or after a word of contrast
_NAMED = 2  # content words of a request that a reply names which does not know about them
_EQUAL = 0.7  # the share of their words that two equal replies have in common

#: A message and its reply in one or several messages, with their positions.
_TurnRows = list[tuple[int, StoredMessage]]


class _Stored(NamedTuple):
    """The messages of a scope."""

    store: Store
    scope: Scope
    candidates: Candidates
    sessions: Sessions


class _Asking(NamedTuple):
    """A question that was asked before, and its replies."""

    positions: tuple[int, ...]
    answer: tuple[int, ...]  # the question and what it was answered, without what came before calls
    reply: frozenset[str]
    says_nothing: bool
    repeats: bool  # whether it was the same question, not another one that was asked in vain


def find_echoes(
    store: Store, scope: Scope, candidates: Candidates, sessions: Sessions, question: str
) -> Echoes | None:
    """Find earlier askings that got no answer or that of a later one, and the newest, if any."""
    words = content_words(question)
    suspects = _find_suspects(candidates, question)
    if not words or not len(suspects):
        return None
    askings: list[_Asking] = []
    stored = _Stored(store, scope, candidates, sessions)
    for start, end in ((0, _FIRST_READ), (_FIRST_READ, _READ)):
        askings += _read(stored, suspects[start:end], question)
        if not askings:
            return None
    askings.sort(key=lambda asking: -asking.positions[0])  # newest first
    echoes = [asking for asking in askings if asking.says_nothing]
    older = [asking for asking in echoes if asking.repeats][1:]
    answers: list[frozenset[str]] = []
    for asking in askings:
        if not asking.says_nothing:
            if any(_are_equal(asking.reply, newer) for newer in answers[:_COMPARED]):
                older.append(asking)
            else:
                answers.append(asking.reply)
    answered = next((row.answer for row in askings if not row.says_nothing), ())
    return Echoes(_positions([*echoes, *older]), _positions(older), answered)


def _positions(askings: Sequence[_Asking]) -> Positions:
    return np.array(sorted({at for row in askings for at in row.positions}), np.intp)


def _find_suspects(candidates: Candidates, question: str) -> Positions:
    """Return the positions of messages that may repeat a question, the nearest first."""
    counts = np.zeros(len(candidates.ids))
    for posting in candidates.postings:
        counts[posting.positions] += 1
    share = counts / max(1, len(candidates.postings) + len(candidates.absent))
    cosine = candidates.cosine
    near = (share >= _SHARE) & ~(cosine < _NEAR)
    near |= cosine >= _SAME
    near &= candidates.terms <= _LENGTH_FACTOR * count_terms(question) + _LENGTH_MORE
    positions = np.flatnonzero(near)
    order = np.argsort(-(np.nan_to_num(cosine[positions]) + share[positions]), kind="stable")
    return positions[order]


def _read(stored: _Stored, suspects: Positions, question: str) -> list[_Asking]:
    """Read messages, and return those that repeat the question or asked in vain, with replies."""
    turns = _read_turns(stored, suspects, _REPLIES)
    working = [first for first, turn in turns.items() if any(row.tool_calls for _, row in turn)]
    if working:
        longer = np.array(working, np.intp)
        turns |= _read_turns(stored, longer, _STEPS)
    askings = []
    for first, turn in turns.items():
        replies = [(at, row) for at, row in turn[1:] if row.content.strip()]
        if not turn or turn[0][1].role is not Role.USER:
            continue
        message = turn[0][1]
        texts = " ".join(row.content for _, row in replies)[:_REPLY_READ]
        same = bool(stored.candidates.cosine[first] >= _SAME)
        is_same = repeats(message, question, texts, same=same)
        if is_same or _asked_in_vain(message.content, texts):
            says_nothing = not adds_something(texts, f"{question} {message.content}")
            if says_nothing and turn[-1][1].tool_calls:  # the reply may be further on
                continue
            positions = (first, *(at for at, _ in replies))
            answer = (first, *(at for at, row in replies if not row.tool_calls))
            words = content_words(texts)
            askings.append(_Asking(positions, answer, words, says_nothing, is_same))
    return askings


def _asked_in_vain(text: str, reply: str) -> bool:
    """Return whether a text is only a question, and the reply that its answer is not known."""
    if len(sentences(text)) > 1:
        return False
    if not has_question_mark(text) and len(content_words(text) & content_words(reply)) < _NAMED:
        return False
    return knows_nothing(reply) and not adds_something(reply, text)


def _read_turns(stored: _Stored, positions: Positions, most: int) -> dict[int, _TurnRows]:
    """Return by position a message and what the assistant said after it, with their positions.

    If that does not know the answer, and the asker says it next, that is returned instead.
    """
    following = _following(stored.sessions, positions, most)
    read, ids = sorted({at for row in following.values() for at in row}), stored.candidates.ids
    rows = {row.id: row for row in stored.store.by_id(ids[read].tolist(), stored.scope)}
    turns = {}
    for first, following_positions in following.items():
        pairs = [(at, row) for at in following_positions if (row := rows.get(int(ids[at])))]
        turn = pairs[:1]
        for at, row in pairs[1:]:
            if row.role is Role.USER and _answers(row.content, turn):
                turn[1:] = [(at, row)]
            if row.role not in (Role.ASSISTANT, Role.TOOL):
                break
            if row.role is Role.ASSISTANT:
                turn.append((at, row))
        turns[first] = turn
    return turns


def _answers(text: str, turn: _TurnRows) -> bool:
    """Return whether the asker says the answer, after a reply that does not know it."""
    question, reply = turn[0][1].content, " ".join(row.content for _, row in turn[1:])
    if not knows_nothing(reply) or has_question_mark(text):
        return False
    words = content_words(text)
    return len(words) >= _TOLD and not words <= content_words(question)


def _following(
    sessions: Sessions, positions: Positions, most: int
) -> Mapping[int, tuple[int, ...]]:
    rows = {}
    for position, at in zip(
        positions.tolist(), sessions.session_positions(positions).tolist(), strict=True
    ):
        end = at + 1
        while (
            end - at <= most
            and end < len(sessions.number)
            and sessions.number[end] == sessions.number[at]
        ):
            end += 1
        order = range(at, end) if sessions.order is None else sessions.order[at:end].tolist()
        rows[position] = tuple(order)
    return rows


def repeats(message: StoredMessage, question: str, reply: str, *, same: bool) -> bool:
    """Return whether a message asks the same; ``same`` says whether it means nearly that."""
    if not reply.strip() and not has_question_mark(message.content):
        return False
    terms, words = content_words(question), content_words(_without_lead(message.content))
    added = words - terms
    if not added and len(words & terms) >= _SUBSET * len(terms):
        return True
    alike = len(words & terms) >= _REPEATED * len(terms) and len(added) <= max(2, len(terms) / 2)
    if not alike and not same:
        return False
    return has_question_mark(message.content) or knows_nothing(reply)


def _without_lead(text: str) -> str:
    """Return a text without a few words before a colon, as in ``Please look it up: …``."""
    lead, _, rest = text.replace("\uff1a", ":").partition(":")
    is_lead = len(content_words(lead)) <= _LEAD and not re.search(r"[\d\n]", lead)
    return rest if is_lead and rest.strip() else text


def _are_equal(first: frozenset[str], second: frozenset[str]) -> bool:
    return len(first & second) >= _EQUAL * len(first | second)


def adds_something(reply: str, question: str) -> bool:
    """Return whether a reply says anything that its question does not say, also yes or no.

    A reply that begins by saying that it knows nothing does not, unless most of it says something
    else, or it contains a number of its own, or a sentence goes on with what is the case, as in
    ``not in Git, but in the vault``.
    """
    asked = content_words(question)
    own = content_words(reply) - asked
    if not own:
        return bool(_compiled(_YES_NO).match(reply.strip()))
    parts = sentences(reply)
    if not any(map(knows_nothing, parts[:2])):
        return True
    if any(character.isdigit() for word in own for character in word):
        return True
    if any(_goes_on(part, asked) for part in parts[:2]):
        return True
    empty = sum(map(_is_empty, parts))
    return 2 * empty < len(parts) or 2 * empty == len(parts) > 1


def _is_empty(text: str) -> bool:
    """Return whether a part of a reply is not about its subject: it knows nothing, or asks back."""
    return knows_nothing(text) or has_question_mark(text) or bool(_compiled(_OFFERS).search(text))


def _goes_on(sentence: str, asked: frozenset[str]) -> bool:
    """Return whether a sentence that knows nothing goes on with words that were not asked for."""
    instead = re.split(_INSTEAD, sentence, flags=re.IGNORECASE)[1:]
    if any(not _is_empty(part) and content_words(part) - asked for part in instead):
        return True
    clauses = re.split(_CLAUSE, sentence, flags=re.IGNORECASE)  # what divides them in odd places
    first = next((at for at in range(0, len(clauses), 2) if knows_nothing(clauses[at])), None)
    if first is None:
        return False
    return any(
        _tells(clauses[at], asked, contrast=clauses[at - 1].strip(" ,").isalpha())
        for at in range(first + 2, len(clauses), 2)
    )


def _tells(clause: str, asked: frozenset[str], *, contrast: bool) -> bool:
    """Return whether a clause has enough words of its own, fewer with a name or after ``but``."""
    if _is_empty(clause) or _compiled(_REASON).match(clause):
        return False
    has_name = any(word[0].isupper() for word in re.findall(r"\w+", clause)[1:])
    own = content_words(clause) - asked
    return len(own) >= (_TOLD_BY_NAME if contrast or has_name else _TOLD)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in any language."""
    return [part for part in re.split(_SENTENCE, text) if part.strip()]


@cache
def _is_content(word: str) -> bool:
    return word not in STOP_WORDS and language_of_function_words([word]) is None


def content_words(text: str) -> frozenset[str]:
    """Return the content words of a text in any language, without their endings."""
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", text.casefold()))
    searched = searched_text(" ".join(word for word in words if _is_content(word)))
    return frozenset(map(without_ending, re.findall(r"[^\W_]+", searched)))


def knows_nothing(text: str) -> bool:
    """Return whether a text says that something is not known, in a usual phrase."""
    return bool(_compiled(_NOT_KNOWING).search(text.replace("\u2019", "'")))


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.IGNORECASE)


#: Where a sentence may go on with something else: at signs, and at words of contrast.
_CLAUSE = (
    r"((?:[,;:—–，、；：]\s*|\s-\s)?\b(?:but|aber|mais|pero|mas|ma|maar|men|ale|а|но|але)\s|但|ので"
    r"|[,;:—–，、；：]\s*|\s-\s)"
)
#: Words before why something is not known, or what follows from that.
_REASON = (
    r"(?:and )?(?:so|because|since|therefore|as)\b|(?:und )?(?:weil|da|daher|deshalb|also|sodass)\b"
    r"|(?:et )?(?:car|donc|parce que|puisque)\b|(?:y )?(?:así que|porque|por lo)|(?:e )?(?:quindi"
    r"|perciò|perché|portanto|pois|por isso)\b|dus\b|omdat\b|want\b|(?:и )?(?:поэтому|потому)"
    r"|dlatego"
    r"|więc\b|bo\b|因为|所以"
)
#: Words before what is the case instead.
_INSTEAD = r"\b(?:but rather|sondern|sino|bensí|utan|lecz)\s|而是"
_SENTENCE = r"(?<=[.!?…])\s+|(?<=[。！？])|\n+"
_YES_NO = (
    r"(?:yes|yep|yeah|no|nope|ja|nein|doch|oui|non|si|sí|sì|no|sim|não|nee|tak|nie|evet|hayır|да"
    r"|нет|так|ні|是|不是|对|はい|いいえ|네|아니요)(?:$|[\s,.!。！，])"
)
#: The usual phrases of not knowing; each begins at the beginning of a word.
_NOT_KNOWING_SPACED = "|".join(
    (
        # English
        r"(?:(?:i|we|i'm|we're) (?:\w+ ){0,2}|(?:and|but|so) |(?<![\w'] ))(?:don't|do not|didn't"
        r"|did not"
        r"|haven't|have not"
        r"|couldn't|could not|can't|cannot|can not|wasn't able to|am unable to|was unable to"
        r"|unable to|am not able to|not able to)\b[^.!?,;]{0,24}\b(?:know|see|find|found|recall"
        r"|remember|access|seen|locate|say|tell|been told|determine|provide|answer|confirm"
        r"|discussed|talked|spoken)\b|no (?:way (?:of knowing|to know)|clue)\b|beats me\b"
        r"|(?:wouldn't|would not) know\b|(?:hasn't|has not) come up\b",
        r"(?:i|we) (?:\w+ ){0,2}(?:don't|do not|didn't|did not) (?:\w+ ){0,2}have\b",
        r"(?:don't|do not|doesn't|does not|didn't|did not|haven't"
        r"|hasn't)\b[^.!?,;]{0,24}\b(?:mention"
        r"|say|contain)\w*\b",
        r"(?:isn't|aren't|wasn't|weren't) any (?:information|record|mention|memory|data"
        r"|trace)\w*\b",
        r"no (?:information|record|records|mention|memory|memories|details|data|idea|knowledge"
        r"|access|context|notes?|trace|results?)\b",
        r"not (?:sure|aware|mentioned|recorded|stored|found|known|something i|in my)\b",
        r"you (?:haven't|have not|never|didn't|did not) (?:\w+ ){0,2}(?:told|tell|mention|shared?"
        r"|given?"
        r"|said|say)\w*\b|(?:never|not) (?:yet )?(?:told|mentioned to) me\b|never (?:talked"
        r"|spoke) about\b",
        r"(?:unknown to me|nothing (?:found|about|stored|related|matching|on (?:this|that|it|file"
        r"|record)|in (?:my|our|the (?:notes|records|conversations?)))"
        r"|only (?:see|know)|lack (?:any|the|information))\b",
        # German
        r"keine?[nr]? (?:\w+ ){0,2}(?:informationen|information|angaben|hinweise?|daten|ahnung"
        r"|zugriff|zugang|details|einträge|eintrag|kenntnis|erinnerung|notizen|aufzeichnungen)\b",
        r"(?:weiß|weiss|kenne|finde|sehe|habe|erinnere)\b[^.!?,;]{0,60}\b(?:nicht|nichts"
        r"|nirgends)\b"
        r"|(?:sehe|kenne|weiß|weiss) (?:\w+ ){0,2}nur\b|(?:liegt|liegen|steht|stehen|kommt"
        r"|kommen)\b[^.!?,;]{0,60}\b(?:nichts|nirgends|nicht (?:vor|darin|drin)|keine?[nr]? vor)\b"
        r"|leider (?:nicht|nichts|keine?)\b"
        r"|nicht bekannt\b|nie(?:mals)?\b[^.!?]{0,30}\b(?:gesagt|erzählt|erwähnt|gesprochen"
        r"|verraten)\b|nichts (?:\w+ ){0,2}(?:gefunden|gespeichert)\b|(?:hast|haben|habt"
        r"|wurde)\b[^.!?]{0,40}\bnicht (?:gesagt|erzählt|erwähnt|verraten|mitgeteilt)\b"
        r"|kann ich (?:\w+ ){0,3}nicht (?:sagen|beantworten|wissen)\b",
        # French
        r"(?:je|nous|on) (?:\w+ )?ne (?:sais|connais|trouve|vois|dispose|possède|me souviens)\b"
        r"|n'ai\b[^.!?]{0,30}\b(?:pas|aucune?|rien)\b|(?:aucune|pas d') ?(?:information|donnée"
        r"|mention|trace|idée|détail)|(?:ne |n')[^.!?]{0,20}\b(?:pas|jamais"
        r"|rien) (?:encore )?(?:dit|parlé|mentionné|précisé|raconté)"
        r"|ne peux (?:donc )?pas (?:\w+ )?(?:dire|savoir|répondre|indiquer)|(?:l'|j')ignore\b"
        r"|(?:j'ai|je n'ai) rien trouvé\b"
        r"|(?:sais|trouve) (?:pas|rien)\b",
        # Spanish, Portuguese, Italian, Catalan
        r"no (?:lo )?(?:sé|tengo|encuentro|recuerdo|dispongo|consta|encontré|conozco)\b",
        r"(?:no hay|não há) (?:\w+ )?(?:informaci[óo]n|informaç\w+|datos|dados|registros?|mención"
        r"|menção|constancia|nada)\b",
        r"(?:no|nunca|aún no|todavía no) (?:me |lo |la |nos |se )*(?:ha[ns]? (?:dicho|contado"
        r"|mencionado)|dijiste|contaste|hemos hablado|hablamos|consta)\b|ni idea\b"
        r"|(?:lo )?desconozco\b|no (?:te |lo |se )*(?:puedo (?:decir|saber|acceder)|sabría)"
        r"|imposible (?:saber|determinar)|no (?:he"
        r"|hemos|se ha) encontrado\b|nada (?:al respecto|sobre es[eot])|(?:não|nunca"
        r"|ainda não) (?:me |mo |nos )*(?:contou|contaste|disse(?:ste|ram)?|falou|falaste|falámos"
        r"|falamos|mencionou)\b|não foi mencionado\b|não (?:faço (?:a menor )?ideia"
        r"|consigo (?:dizer|saber|responder)"
        r"|posso dizer|achei)\b|(?:nem ideia|desconheço)\b|nada (?:encontrado|sobre isso)\b"
        r"|(?:non|mai)\b[^.!?]{0,20}\b(?:detto|parlato|raccontato|menzionato|trovato)\b|non (?:mi"
        r"|ci) risulta\b|(?:nessuna idea|lo ignoro)\b|non (?:ne ho idea|saprei|posso (?:dirlo"
        r"|dirtelo|saperlo|rispondere))\b|niente (?:al riguardo|su questo)\b",
        r"(?:ninguna|sin) información\b|não (?:sei|tenho|encontrei|encontro|me lembro|disponho"
        r"|consta)\b|nenhuma informação\b|non (?:lo )?(?:so|ho (?:\w+ )?(?:informazion\w|idea|dati"
        r"|accesso"
        r"|trovato|traccia|nulla|ricord\w)|trovo|ricordo|dispongo|risulta"
        r"|è (?:stato menzionato|emerso)|posso accedere|sono a conoscenza)\b"
        r"|nessuna informazione\b|no (?:ho )?(?:sé|tinc)\b",
        # Dutch, Swedish, Norwegian, Danish, Finnish
        r"niet bekend\b|beschik niet\b|(?:weet|vind|herinner|ken)\b[^.!?]{0,30}\b(?:niet|niets)\b"
        r"|geen (?:\w+ )?(?:informatie"
        r"|gegevens|idee|toegang|vermelding)\b|(?:niets?|nooit)\b[^.!?]{0,30}\b(?:verteld|gezegd"
        r"|genoemd|gevonden|(?:terug)?vinden|besproken|zeggen|over gehad)\b|(?:aldrig"
        r"|inte) (?:berättat"
        r"|sagt|nämnt)\b|ingen aning\b|(?:vet|hittar|ved|finner|finder|husker"
        r"|minns)\b[^.!?]{0,20}\b(?:inte|ikke|inget|ingenting)\b|ingen (?:information|informasjon"
        r"|uppgift|tilgang|tillgång)\b|en (?:tiedä|löydä|muista)\b|ei (?:ole )?tieto",
        # Polish, Czech, Hungarian, Romanian, Turkish, Greek
        r"nie (?:wiem|mam|znam|pamiętam|znalazł[ae]m|posiadam|umiem (?:tego )?powiedzieć|potrafię"
        r"|wynika|mogę podać|mówił\w*|powiedział\w*|wspominał\w*|rozmawialiśmy)\b|nie mogę (?:tego "
        r"|ci )*(?:powiedzieć|znaleźć)|(?:nic|niczego)\b[^.!?]{0,20}\bnie (?:wiem|ma|znalazł\w*"
        r"|znajduję)\b|pojęcia\b|brak (?:informacji|danych)\b",
        r"(?:nevím|nemám|neznám|nenašel|nepamatuji)\b|nem (?:tudom|találo\w+|emlék\w+|ismerem)\b"
        r"|nincs (?:\w+ ){0,2}(?:információ\w*|adat\w*)|nu (?:știu|stiu|am|găsesc|gasesc)\b",
        r"(?:bilgim|bilgi|kayıt|fikrim) (?:yok|bulunmuyor|bulamadım)|bilmiyorum\b|bulamadım\b",
        r"δεν (?:έχω|ξέρω|γνωρίζω|βρίσκω|θυμάμαι|υπάρχ)",
        # Russian, Ukrainian
        r"не (?:знаю|нашл\w+|наш[её]л|помню|располагаю|знайш\w+|пам'ятаю|маю|имею|говорил\w*"
        r"|сказал\w*|рассказывал\w*|упоминал\w*|могу (?:\w+ )?(?:сказать|ответить|найти)|казал\w*"
        r"|розповідал\w*)\b|(?:понятия не имею|без понятия|мне (?:это )?неизвестно|неизвестно"
        r"|не в курсе|не упомина\w+|не имею доступа"
        r"|не було згадки|гадки не маю|не можу сказати)\b|ничего\b[^.!?]{0,20}\bне наш"
        r"|ничего об этом\b|(?:нет|немає|нема) (?:\w+ ){0,2}(?:информации|данных|сведений"
        r"|інформації|даних|записей)",
    )
)
#: Those of scripts whose words have no beginning, or prefixes.
_NOT_KNOWING_RUNS = "|".join(
    (
        # Chinese, Japanese, Korean
        "不知道|不清楚|不了解|不记得|不記得|没有[^。！？]{0,12}(?:信息|资料|記錄|记录|相关|提到"
        "|内容)",
        "沒有[^。！？]{0,12}(?:資訊|資料|記錄|相關|提到|內容)|没有找到|不足以|无法(?:找到|得知"
        "|确定|回答|判断|访问)|查不到|找不到",
        "わかりません|分かりません|知りません|存じません|情報(?:が|は)?(?:ありません|ない"
        "|ございません)",
        "見つかりません|覚えていません|(?:聞いて|伺って|教えてもらって|話して)(?:い)?(?:ません"
        "|ない)|お答えできません|持ち合わせて|(?:話|記録)は?(?:出て|残って)いない"
        "|見当(?:が|も)つ[かき]|(?:見つから|分から|わから|知ら|覚えてい?)な(?:い|かった)"
        "|見つかりませんでした"
        "|記録(?:が|は)(?:ない|ありません)|모르|없습니다|없어요|찾을 수 없|기억나지|알지 못",
        # Arabic, Hebrew, Persian, Hindi, Vietnamese, Indonesian, Amharic, Thai
        "لا أعرف|لا أعلم|ليس لدي|ليست لدي|لا توجد|لا أملك|لم أجد|אין לי|לא יודע|לא מצאתי"
        "|نمی‌?دانم|ندارم",
        "नहीं (?:पता|जानता|मिल|है)|जानकारी नहीं|पता नहीं|không (?:biết|có thông tin|tìm thấy|nhớ)",
        r"\btidak (?:tahu|punya|memiliki|ada|menemukan)\b|አላውቅም|መረጃ የለ|ไม่ทราบ|ไม่มีข้อมูล"
        r"|ไม่รู้|ไม่พบ",
    )
)
_NOT_KNOWING = rf"\b(?:{_NOT_KNOWING_SPACED})|{_NOT_KNOWING_RUNS}"
#: Usual offers, advice and courtesies beside an answer that is missing.
_OFFERS = "|".join(
    (
        r"\b(?:if you|let me know|could you|can you|would you|please|you (?:can|could|may|might)"
        r"|help you|feel free|happy to|sorry|unfortunately|perhaps|maybe|it may|it might|i can"
        r"|apologi[sz]e|thank you|(?:may|might|should) be able|as an? (?:ai|language model)"
        r"|(?:would|i'd|i) (?:\w+ )?(?:recommend|advise|suggest)|(?:check|consult|contact|checking)"
        r" (?:your|the|with)|typically|usually|commonly|normally|generally|possible reasons"
        r"|common \w+ include)\b",
        r"\b(?:wenn (?:du|sie)|falls (?:du|sie)|könntest|könnten sie|kannst du|bitte|helfe|sag mir"
        r"|leider|vielleicht|tut mir leid|gern|empfehle|am besten|möchten sie|mögliche gründe"
        r"|(?:schauen|fragen|prüfen|wenden) sie|häufig|meist|meistens|normalerweise"
        r"|üblicherweise)\b",
        r"\b(?:si (?:vous|tu)|pourri\w+|peux-tu|pouvez-vous|désolée?|s'il vous|s'il te|conseill\w+"
        r"|vérifiez|consultez|contactez|n'hésite\w*|je (?:peux|pourrai)|il vaut mieux|généralement"
        r"|souvent|habituellement)\b",
        r"\b(?:si (?:me|puedes|quieres|lo)|podrías|puedes|por favor|lo siento|se (?:mi|puoi|vuoi"
        r"|você"
        r"|quiser)|poderia|desculpe|per favore|mi dispiace|recomi?end\w+|revisa|consult[ae]|puedo"
        r"|conveniente|consiglio|controlla|potre\w+|forse|posso|verifique|normalmente|generalmente"
        r"|suele|di solito|geralmente|costuma|você pode)\b",
        r"\b(?:als (?:je|u)|kun je|kunt u|u kunt|alsjeblieft|raadpleeg|misschien|meestal|doorgaans"
        r"|zwykle|zazwyczaj|обычно|jeśli|proszę"
        r"|sprawdź"
        r"|warto|om du|kan du|lütfen|если|пожалуйста|якщо|будь ласка|рекоменд\w+|уточните|проверьте"
        r"|возможно|могу (?:предложить|помочь))\b|如果|请|請|建议|通常|一般|您可以|你可以|もし"
        r"|ください"
        r"|ご確認|かもしれ"
        r"|よろしければ|주시면|만약|إذا|अगर|jika|nếu",
    )
)
