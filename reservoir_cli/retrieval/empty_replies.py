"""Recognise replies that say nothing that their question does not say. Pure."""
# ruff: noqa: RUF001 - letters and signs of other scripts

import re
from functools import cache

from reservoir_cli.storage.search.fulltext import STOP_WORDS, searched_text
from reservoir_cli.util.languages import language_of_function_words

#: Letters at the end of longer words are ignored, as they may be inflected.
_LONGEST_WHOLE, _ENDING = 4, 2


def adds_something(reply: str, question: str) -> bool:
    """Return whether a reply says anything that its question does not say, also yes or no.

    A reply that begins by saying that it knows nothing does not, unless most of it says something
    else, or it contains a number of its own.
    """
    own = content_words(reply) - content_words(question)
    if not own:
        return bool(_compiled(_YES_NO).match(reply.strip()))
    parts = sentences(reply)
    if not any(map(knows_nothing, parts[:2])):
        return True
    if any(character.isdigit() for word in own for character in word):
        return True
    empty = sum(knows_nothing(part) or _offers(part) for part in parts)
    return 2 * empty < len(parts) or 2 * empty == len(parts) > 1


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in any language."""
    return [part for part in re.split(_SENTENCE, text) if part.strip()]


@cache
def _is_content(word: str) -> bool:
    return word not in STOP_WORDS and language_of_function_words([word]) is None


def content_words(text: str) -> frozenset[str]:
    """Return the content words of a text in any language, without their endings."""
    words = re.findall(r"[^\W_]+", searched_text(text.casefold()))
    return frozenset(
        word if len(word) <= _LONGEST_WHOLE else word[: max(_LONGEST_WHOLE, len(word) - _ENDING)]
        for word in words
        if _is_content(word)
    )


def knows_nothing(text: str) -> bool:
    """Return whether a text says that something is not known, in a usual phrase."""
    return bool(_compiled(_NOT_KNOWING).search(text.replace("\u2019", "'")))


def _offers(text: str) -> bool:
    return bool(_compiled(_OFFERS).search(text))


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.IGNORECASE)


_SENTENCE = r"(?<=[.!?…])\s+|(?<=[。！？])|\n+"
_YES_NO = (
    r"(?:yes|yep|yeah|no|nope|ja|nein|doch|oui|non|si|sí|sì|no|sim|não|nee|tak|nie|evet|hayır|да"
    r"|нет|так|ні|是|不是|对|はい|いいえ|네|아니요)(?:$|[\s,.!。！，])"
)
#: The usual phrases of not knowing.
_NOT_KNOWING = "|".join(
    (
        # English
        r"\b(?:don't|do not|doesn't|does not|didn't|did not|haven't|have not|couldn't|could not"
        r"|can't|cannot|can not|wasn't able to|unable to|not able to)\b[^.!?]{0,24}\b(?:know|have"
        r"|see|find|found|recall|remember|access|seen|locate|say|tell|mention\w*|been told)\b",
        r"\bno (?:information|record|records|mention|memory|memories|details|data|idea|knowledge"
        r"|access|context|notes?|trace|results?)\b",
        r"\bnot (?:sure|aware|mentioned|recorded|stored|found|known|something i|in my)\b",
        r"\b(?:unknown to me|nothing (?:about|on|in|stored|is|was|here|that|related|matching)"
        r"|only (?:see|know)|lack (?:any|the|information))\b",
        # German
        r"\bkeine?[nr]? (?:\w+ ){0,2}(?:informationen|information|angaben|hinweise?|daten|ahnung"
        r"|zugriff|details|einträge|eintrag|kenntnis|erinnerung|notizen|aufzeichnungen)\b",
        r"\b(?:weiß|weiss|kenne|finde|sehe|habe|erinnere|liegt|liegen|steht"
        r"|kommt)\b[^.!?]{0,60}\b(?:nicht|nichts|nirgends|nur)\b|\bleider (?:nicht|nichts"
        r"|keine?)\b|\bnicht bekannt\b",
        # French
        r"\bne (?:sais|connais|trouve|vois|dispose|possède|me souviens)\b|\bn'ai\b[^.!?]{0,30}"
        r"\b(?:pas|aucune?|rien)\b|\b(?:aucune|pas d') ?(?:information|donnée|mention|trace"
        r"|détail)",
        # Spanish, Portuguese, Italian, Catalan
        r"\bno (?:lo )?(?:sé|tengo|encuentro|recuerdo|dispongo|consta|hay|encontré|conozco)\b",
        r"\b(?:ninguna|sin) información\b|\bnão (?:sei|tenho|encontrei|encontro|me lembro|há"
        r"|disponho|consta)\b|\bnenhuma informação\b|\bnon (?:lo )?(?:so|ho|trovo|ricordo|dispongo"
        r"|risulta|sono a conoscenza)\b|\bnessuna informazione\b|\bno (?:ho )?(?:sé|tinc)\b",
        # Dutch, Swedish, Norwegian, Danish, Finnish
        r"\b(?:weet|vind|herinner|ken)\b[^.!?]{0,30}\b(?:niet|niets)\b"
        r"|\bgeen (?:\w+ )?(?:informatie|gegevens|idee|toegang|vermelding)\b|\b(?:vet|hittar|ved"
        r"|finner|finder|husker|minns)\b[^.!?]{0,20}\b(?:inte|ikke|inget|ingenting)\b"
        r"|\bingen (?:information|informasjon|uppgift|tilgang|tillgång)\b|\ben (?:tiedä|löydä"
        r"|muista)\b|\bei (?:ole )?tieto",
        # Polish, Czech, Hungarian, Romanian, Turkish, Greek
        r"\bnie (?:wiem|mam|znam|pamiętam|znalazłem|posiadam)\b|\bbrak (?:informacji|danych)\b",
        r"\b(?:nevím|nemám|neznám|nenašel|nepamatuji)\b|\bnem (?:tudom|találo\w+|emlék\w+"
        r"|ismerem)\b|\bnincs (?:\w+ ){0,2}(?:információ\w*|adat\w*)|\bnu (?:știu|stiu|am|găsesc"
        r"|gasesc)\b",
        r"\b(?:bilgim|bilgi|kayıt|fikrim) (?:yok|bulunmuyor|bulamadım)|\bbilmiyorum\b"
        r"|\bbulamadım\b",
        r"δεν (?:έχω|ξέρω|γνωρίζω|βρίσκω|θυμάμαι|υπάρχ)",
        # Russian, Ukrainian
        r"\bне (?:знаю|нашл\w+|наш[её]л|помню|располагаю|знайш\w+|пам'ятаю|маю|имею)\b|\b(?:нет"
        r"|немає|нема) (?:\w+ ){0,2}(?:информации|данных|сведений|інформації|даних|записей)",
        # Chinese, Japanese, Korean
        "不知道|不清楚|不了解|不记得|不記得|没有[^。！？]{0,12}(?:信息|资料|記錄|记录|相关|提到|内容)",
        "沒有[^。！？]{0,12}(?:資訊|資料|記錄|相關|提到|內容)|无法(?:找到|得知|确定|回答)|查不到|找不到",
        "わかりません|分かりません|知りません|存じません|情報(?:が|は)?(?:ありません|ない|ございません)",
        "見つかりません|覚えていません|모르|없습니다|없어요|찾을 수 없|기억나지|알지 못",
        # Arabic, Hebrew, Persian, Hindi, Vietnamese, Indonesian, Amharic, Thai
        "لا أعرف|لا أعلم|ليس لدي|ليست لدي|لا توجد|لا أملك|لم أجد|אין לי|לא יודע|לא מצאתי"
        "|نمی‌?دانم|ندارم",
        "नहीं (?:पता|जानता|मिल|है)|जानकारी नहीं|पता नहीं|không (?:biết|có thông tin|tìm thấy|nhớ)",
        r"\btidak (?:tahu|punya|memiliki|ada|menemukan)\b|አላውቅም|መረጃ የለ|ไม่ทราบ|ไม่มีข้อมูล"
        r"|ไม่รู้|ไม่พบ",
    )
)
#: The usual offers to go on without an answer.
_OFFERS = "|".join(
    (
        r"\b(?:if you|let me know|could you|can you|would you|please|you (?:can|could|may|might)"
        r"|help you|feel free|happy to|sorry|unfortunately|perhaps|maybe|it may|it might)\b",
        r"\b(?:wenn (?:du|sie)|falls (?:du|sie)|könntest|könnten sie|kannst du|bitte|helfe|sag mir"
        r"|leider|vielleicht|tut mir leid|gern)\b",
        r"\b(?:si (?:vous|tu)|pourri\w+|peux-tu|pouvez-vous|désolée?|s'il vous|s'il te)\b",
        r"\b(?:si (?:me|puedes|quieres|lo)|podrías|puedes|por favor|lo siento|se (?:mi|puoi|você"
        r"|quiser)|poderia|desculpe|per favore|mi dispiace)\b",
        r"\b(?:als (?:je|u)|kun je|kunt u|alsjeblieft|jeśli|proszę|om du|kan du|lütfen|если|"
        r"пожалуйста|якщо|будь ласка)\b|如果|请|請|もし|ください|주시면|만약|إذا|अगर|jika|nếu",
    )
)
