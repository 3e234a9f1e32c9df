"""Texts that are made to slow an import or the proxy down: the steps grow with the text."""

import re

from each import each
from patterns import count_steps

from reservoir_cli.server.proxy.parse_request import _ADDRESS
from reservoir_cli.transfer.formats import open_webui
from reservoir_cli.transfer.formats.codex_notices import _CITATION, _REVIEW
from reservoir_cli.transfer.formats.gemini_cli import _FOLDER
from reservoir_cli.transfer.formats.open_webui import _ATTRIBUTE, _DETAILS, _SUMMARY
from reservoir_cli.transfer.reading.content_blocks import remove_between, texts_between

SIZE = 400
PATTERNS = {  # the beginning of a text, and what follows it many times
    "citation": (_CITATION, "", "\n"),
    "citations": (_CITATION, "<oai-mem-citation></oai-mem-citation>.", " \n"),
    "review": (_REVIEW, "<user_action>", "<results>"),
    "folder": (_FOLDER, "Workspace Directories:", "\n"),
    "summary": (_SUMMARY, "", "\n"),
    "attributes": (_ATTRIBUTE, "", "name"),
    "addresses": (_ADDRESS, "", "http://a.example/b and "),
}


@each("name", PATTERNS)
def test_a_pattern_of_an_importer_takes_steps_by_the_length_of_a_text(name):
    pattern, beginning, unit = PATTERNS[name]
    steps = [
        count_steps(pattern.pattern, beginning + unit * (size // len(unit)), starts)
        for size in (SIZE, 2 * SIZE)
        for starts in [[0] if name == "review" else None]
    ]
    assert steps[1] <= 2.6 * steps[0]


class CountedText(str):
    """A text that counts how many characters of it are searched."""

    searched = 0

    def find(self, mark: str, start: int = 0) -> int:  # type: ignore[override]
        found = super().find(mark, start)
        CountedText.searched += (found if found >= 0 else len(self)) - start
        return found


@each("unit", ["<a>", "<a> ", "</a>", "<a></a>", "<a>\n\n", "<<a>"])
def test_texts_between_marks_are_sought_in_one_pass(unit):
    text = CountedText(unit * 500)
    for look in (texts_between, remove_between):
        CountedText.searched = 0
        list(look(text, "<a>", "</a>"))
        assert CountedText.searched <= 3 * len(text)


def test_texts_between_marks_are_those_of_a_regular_expression():
    for text in ("", "a", "1<a> 2 </a>3<a>4</a>", "</a>1<a>2", "<a><a>1</a>2</a>", "1<a>\n</a>"):
        expected = re.findall(r"(?s)<a>\s*(.*?)\s*</a>", text)
        assert list(texts_between(text, "<a>", "</a>")) == expected
        assert remove_between(text, "<a>", "</a>") == re.sub("(?s)<a>.*?</a>", "", text)


def test_details_whose_tag_never_ends_are_not_sought(monkeypatch):
    searched = []

    class Counted:
        """A pattern that records how many characters are searched."""

        def search(self, text: str, start: int, end: int) -> re.Match[str] | None:
            searched.append(max(end - start, 0))
            return _DETAILS.search(text, start, end)

    monkeypatch.setattr(open_webui, "_DETAILS", Counted())
    text = '<details type="reasoning"' * 400
    assert list(open_webui._reply_blocks(text)) == [text]
    assert sum(searched) == 0
