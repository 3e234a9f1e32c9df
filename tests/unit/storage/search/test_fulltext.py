import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from builders import NOW
from each import each
from hypothesis import given
from hypothesis import strategies as st

from reservoir_cli.messages import Message, Scope, StoredMessage, ToolCall, plain_text
from reservoir_cli.retrieval.hits import Hit
from reservoir_cli.retrieval.search import with_words
from reservoir_cli.storage.open_store import open_store
from reservoir_cli.storage.search import fulltext
from reservoir_cli.storage.search.candidates import Candidates
from reservoir_cli.storage.store import Store
from reservoir_cli.tokens import load_counter

HERE = Scope("p", "i")

Adding = Callable[..., list[StoredMessage | None]]

TEXTS = [
    "The cats chase dogs in the garden",
    "Dogs chase the cats",
    "We dropped Redis for Postgres",
    "database migrations and databases",
    "Naïve café au lait",
    "我在北京大学学习",
    "京都に行きました",
    "北 and 京 apart",
    "ฉันรักภาษาไทย",
    "party 🎉 tonight",
    "snake_case_name and foo(bar) { return x->y; }",
    "https://example.org/path?q=1",
    'He said "quoted words" loudly',
    "to be AND not to be OR NEAR",
]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return a store with :data:`TEXTS`, which tests only read."""
    path: Path = tmp_path_factory.mktemp("texts") / "store.db"
    with closing(open_store(str(path))) as store:
        messages = [Message("user", text) for text in TEXTS]
        store.add(HERE, messages, counter=load_counter("approximate"), now=NOW)
        yield store


def matching_texts(store: Store, query: str, scope: Scope = HERE, limit: int = 99) -> list[str]:
    hits, _ = store.keyword(query, scope, limit)
    by_id = {
        message.id: message.content for message in store.by_id([hit[0] for hit in hits], scope)
    }
    return [by_id[number] for number, _ in hits]


def matching_positions(candidates: Candidates) -> set[int]:
    """Return the positions of the candidates that contain a word of the question."""
    return {position for posting in candidates.postings for position in posting.positions.tolist()}


FINDS = [
    # query, beginnings of the matching TEXTS, whether they contain all words
    ("words are found without their endings", "cat chasing", ["The cats", "Dogs"], True),
    ("letter case does not count", "REDIS", ["We dropped"], True),
    ("accents do not count", "naive CAFE", ["Naïve"], True),
    ("all words, in any order", "garden cats", ["The cats"], True),
    ("else any word", "garden redis nowhere", ["The cats", "We dropped"], False),
    ("none of the words", "nowhere nothing", [], True),
    ("a phrase in its order", '"chase dogs"', ["The cats"], True),
    ("a phrase the other way round", '"dogs chase"', ["Dogs"], True),
    ("a phrase that is not there", '"cats dogs"', [], True),
    ("a phrase and a word", '"chase dogs" garden', ["The cats"], True),
    ("a prefix", "postg*", ["We dropped"], True),
    ("a prefix of a phrase's last word", '"dropped red"*', ["We dropped"], True),
    ("no prefix without a star", "postg", [], True),
    ("a run of Han", "北京", ["我在"], True),
    ("a run inside a word", "京大", ["我在"], True),
    ("one character", "京", ["我在", "京都", "北 and"], True),
    ("a run in another order", "京北", [], True),
    ("two runs", "大学 北京", ["我在"], True),
    ("kana", "行きました", ["京都"], True),
    ("Thai", "ภาษา", ["ฉัน"], True),
    ("emoji beside a word", "party 🎉", ["party"], True),
    ("emoji alone", "🎉", [], True),
    ("parts of names", "foo(bar)", ["snake"], True),
    ("a name with underscores", "snake_case_name", ["snake"], True),
    ("an address", "https://example.org/path?q=1", ["https"], True),
    ("an unclosed quote", '"quoted words', ["He said"], True),
    ("quotes inside a word", 'quoted"words', ["He said"], True),
    ("nothing", "", [], True),
    ("blanks", " \t\n", [], True),
    ("signs only", '" * ( ) : ^ - + { } , ; "" * "', [], True),
]


@each(("name", "query", "beginnings", "all_words"), FINDS)
def test_keyword_search_finds(texts, name, query, beginnings, all_words):
    expected = {text for text in TEXTS if any(text.startswith(start) for start in beginnings)}
    assert len(expected) == len(beginnings)
    assert set(matching_texts(texts, query)) == expected
    assert texts.keyword(query, HERE, 99)[1] is all_words


@pytest.mark.parametrize("operator", ["AND", "OR", "NOT", "NEAR"])
def test_operators_are_searched_as_words(texts, operator):
    assert TEXTS[13] in matching_texts(texts, operator)
    assert matching_texts(texts, f"be {operator} not") == [TEXTS[13]]


@each(
    "query",
    [
        "(redis",
        "redis)",
        "redis:",
        "^redis",
        "-redis",
        "+redis",
        "{redis}",
        "redis;",
        "'redis'",
        '"redis',
        'redis"',
        "*redis",
        "redis**",
        "redis,",
        "`redis`",
        "redis\\",
        "redis--",
    ],
)
def test_punctuation_around_a_word_is_not_syntax(texts, query):
    assert matching_texts(texts, query) == [TEXTS[2]]


@each(
    "query",
    [
        "text : cats",
        "scope : cats",
        "{text scope} : cats",
        "NEAR(cats dogs, 9)",
        "cats NOT redis",
        '"cats" OR "redis"',
        "cats') --",
    ],
)
def test_any_query_is_searched_as_words(texts, query):
    words = {text for text in TEXTS if "cats" in text}
    assert words <= set(matching_texts(texts, query))


def test_the_key_of_a_scope_cannot_be_found_as_a_word(texts):
    for key in fulltext.scope_keys("p", "i").split():
        assert matching_texts(texts, key, Scope(None)) == []


@pytest.mark.parametrize(
    "query", ["redis\0", "re\0dis redis", "redis \ud800", "redis\udcff", "\udcff", "\0"]
)
def test_invalid_utf8_does_not_fail_a_search(texts, query):
    expected = {TEXTS[2]} if "redis" in query else set()
    assert set(matching_texts(texts, query)) >= expected


@pytest.mark.parametrize("query", ["redis\0", "redis\udcff"])
def test_invalid_utf8_does_not_fail_a_question(texts, query):
    assert matching_positions(texts.candidates(HERE, "i", query, None)) == {2}


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40))
def test_no_search_fails(texts, query):
    texts.keyword(query, HERE, 9)
    texts.candidates(HERE, "i", query, None)


@pytest.mark.parametrize(
    "query",
    [
        " ".join(f"word{number}" for number in range(5_000)) + " redis",
        '"' + "redis " * 5_000 + '" redis',
        "京" * 5_000 + " redis",
        "redis" * 50_000 + " redis",
    ],
    ids=["words", "phrase", "Han", "one word"],
)
def test_a_search_may_be_as_long_as_a_page(texts, query):
    assert matching_texts(texts, query) == [TEXTS[2]]
    texts.candidates(HERE, "i", query, None)


def test_hits_are_ranked_and_limited(store, add):
    filler = "and a great deal of other words that say nothing of it at all"
    first, second, _ = add(
        Message("user", f"tea {filler}"), Message("user", "tea tea"), Message("user", "coffee")
    )
    hits, _ = store.keyword("tea", HERE, 99)
    assert first
    assert second
    assert [number for number, _ in hits] == [second.id, first.id]
    assert hits[0][1] > hits[1][1] > 0
    assert store.keyword("tea", HERE, 1)[0] == hits[:1]


def test_tool_calls_are_searched_too(store, add):
    call = ToolCall("c", "get_weather", '{"city": "Oslo"}')
    [stored] = add(Message("assistant", "", tool_calls=(call,)))
    assert stored is not None
    for query in ("weather", "oslo", "get_weather"):
        assert [number for number, _ in store.keyword(query, HERE, 9)[0]] == [stored.id]


def test_words_behind_escapes_in_tool_calls_are_found(store, add):
    call = ToolCall("c1", "write", r'{"text": "def run():\n\timport numpy\nRedis"}')
    add(Message("assistant", "Writing it.", tool_calls=(call,)))
    for word in ("import", "redis", '"import numpy redis"'):
        [(number, _)] = store.keyword(word, HERE, 9)[0]
    [message] = store.by_id([number], HERE)
    [marked] = with_words([Hit(message, 1, score=1.0)], "redis", "keyword")
    assert [plain_text(message)[start:end] for start, end in marked.words] == ["Redis"]
    store.delete([message.key])
    assert store.keyword("import", HERE, 9)[0] == []
    assert store.problems() == []


def test_other_partitions_do_not_affect_scores(store, add):
    add(Message("user", "tea and milk"), Message("user", "milk and honey and more"))
    before = store.keyword("milk tea", HERE, 9)
    add(*(Message("user", "milk " * 20) for _ in range(30)), partition="q")
    assert store.keyword("milk tea", HERE, 9) == before


WORDS = st.text(st.sampled_from("abcxyzÄéßøñжяλ0189北京ไทยかな"), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def new_scopes():
    """Return a store, and its partitions without messages."""
    with closing(open_store(":memory:")) as store:
        yield store, (Scope(f"p{number}", "i") for number in count())


@given(st.lists(WORDS, min_size=1, max_size=6))
def test_a_text_is_found_by_its_own_words_and_as_a_phrase(new_scopes, words):
    text = " ".join(words)
    store, scope = new_scopes[0], next(new_scopes[1])
    store.add(scope, [Message("user", text)], counter=load_counter("approximate"), now=NOW)
    assert store.keyword(text, scope, 9)[0], text
    assert store.keyword(f'"{text}"', scope, 9)[0], text
    assert store.keyword(f"{words[-1]}*", scope, 9)[0], text
    assert matching_positions(store.candidates(scope, "i", text, None)) == {0}


QUESTIONS = [
    ("why did we drop Redis?", "drop redis"),
    ("What is it?", "what is it"),
    ("tea, tea and TEA", "tea"),
    ("snake_case", "snake case"),
    ("北京 is where", "北 京"),
    ("Wie lange haben wir für die Ernte gebraucht?", "lange ernte gebraucht"),
    ("où est la clé du jardin, et pour qui ?", "clé jardin"),
    ("Wo könnten wir für Jana übernachten?", "jana uebernachten"),
    ("quando è arrivata Mia con il treno?", "arrivata mia treno"),
    ("na jakiej półce stoi miód?", "pólce stoi miód"),
    ("на какой полке стоит мёд?", "полке стоит мёд"),
    ("restart pod", "restart pod"),
    ("die casting", "die casting"),
    ("?!", ""),
    ("", ""),
]


@each(("question", "words"), QUESTIONS)
def test_a_question_is_searched_by_its_content_words(question, words):
    assert fulltext.content_words(question) == words


def test_a_long_question_is_searched_by_its_first_two_hundred_words():
    words = fulltext.content_words(" ".join(f"word{number}" for number in range(5_000))).split()
    assert words == [f"word{number}" for number in range(200)]
    assert fulltext.content_words("tide " * 100_000 + "ebb") == "tide"


@given(st.text(), st.text())
def test_terms_are_always_quoted(text, more):
    for term in fulltext.typed_terms(f'{text}"{more}'):
        assert term.count('"') == 2
        assert term.startswith('"')
        assert term.removesuffix("*").endswith('"')


@given(st.text(), st.text(), st.text(), st.text())
def test_two_scopes_never_share_a_key(partition, instance, other_partition, other_instance):
    same = (partition, instance) == (other_partition, other_instance)
    keys, other_keys = (
        fulltext.scope_keys(partition, instance),
        fulltext.scope_keys(other_partition, other_instance),
    )
    assert (keys == other_keys) is same
    assert keys.isascii()
    assert all(unicodedata.category(sign) in ("Ll", "Nd") for sign in keys.replace(" ", ""))


SPELLINGS = {
    "Łódź": "Lodz",
    "Lodz": "Łódź",
    "smørrebrød": "smorrebrod",
    "Straße": "Strasse",
    "Ærø": "aero",
    "cœur": "coeur",
    "Müller": "Mueller",
    "Mueller": "Müller",
    "Zürich": "Zurich",
    "schön": "schoen",
    "Jäger": "JAEGER",
    "Mu\u0308ller": "mueller",
    "mueller": "Mu\u0308ller",
    "Mülleimer": "Muell*",
    "Herr Müller kam": '"herr müller"',
    "Frau Weiß kam": '"frau weiss"',
    "pingüino": "pinguino",
    "Đorđe": "dorde",
}


@pytest.mark.parametrize(("stored", "query"), SPELLINGS.items(), ids=SPELLINGS)
def test_a_word_is_found_however_its_letters_are_written(store, stored, query):
    messages = [Message("user", stored), Message("user", "something else")]
    store.add(HERE, messages, counter=load_counter("approximate"), now=NOW)
    assert matching_texts(store, query) == [stored]
    if not query.startswith('"') and not query.endswith("*"):
        candidates = store.candidates(HERE, None, f"where was {query}?", None)
        assert len(matching_positions(candidates)) == 1


@given(st.text(alphabet="aouäöüßłø é京x", max_size=40))
def test_other_spellings_are_indexed_after_the_text_and_not_counted(text):
    indexed = fulltext.indexed_text(text)
    assert set(fulltext.searched_text(text).split()) <= set(indexed.split())
    assert fulltext.count_terms(text) == fulltext.count_terms(fulltext.spaced_text(text))


@given(st.text(max_size=60))
def test_each_character_of_an_indexed_text_comes_from_a_span_of_the_text(text):
    spans = fulltext.indexed_spans(text)
    assert len(spans) == len(fulltext.indexed_text(text))
    assert all(0 <= start < end <= len(text) for start, end in spans)
