"""Render messages as HTML: Markdown is converted, HTML is escaped, and the result is sanitised."""

import re
from functools import cache

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markupsafe import Markup

from reservoir_cli.server import limits
from reservoir_cli.server.web.rendering import visible

#: Languages that are highlighted, as named after a code fence.
_LANGUAGES = frozenset(
    "bash c console cpp css diff dockerfile go html ini java javascript js json makefile python py "
    "ruby rust sh shell sql toml ts typescript xml yaml yml".split()
)
#: Code for which the time of some lexers grows with the square of its length: long lines, and for
#: Java words without punctuation.
_LONG_LINE = re.compile(r"[^\n]{500}")
_WORDS = re.compile(r"(?>[\w.\[\]$<>?]+\s++){50}")
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "span", "blockquote", "a"),
    *("ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td"),
    *_HEADINGS,
}
_ATTRIBUTES = {"a": {"href", "title"}, "span": {"class"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}
#: A message's headings are moved below the levels of the page's own headings.
_LOWER = {f"h{level}": f"h{min(6, level + 2)}" for level in range(1, 7)}


def to_html(text: str) -> Markup:
    """Render a message as HTML that loads nothing and runs nothing."""
    dirty = _parser().render(visible(text[: limits.MAX_RENDERED]))
    return Markup(
        nh3.clean(
            dirty,
            tags=_TAGS,
            attributes=_ATTRIBUTES,
            attribute_filter=_drop_relative_link,
            url_schemes=_SCHEMES,
            link_rel="noopener noreferrer nofollow",
        )
    )


def _drop_relative_link(_tag: str, attribute: str, value: str) -> str | None:
    """Drop a link without a host, which would lead to a page of Reservoir or nowhere."""
    is_relative = attribute == "href" and not value.lower().startswith(
        ("http://", "https://", "mailto:")
    )
    return None if is_relative else value


def to_plain_html(text: str) -> Markup:
    """Return a message as HTML that shows its text as it is."""
    return Markup('<pre class="whole">{}</pre>').format(visible(text[: limits.MAX_RENDERED]))


@cache
def _parser() -> MarkdownIt:
    # Images are shown as links, so that nothing is fetched from other servers.
    parser = MarkdownIt("js-default", {"linkify": False, "highlight": _highlight}).disable("image")
    parser.core.ruler.push("lower_headings", _lower_headings)
    return parser


def _lower_headings(state: StateCore) -> None:
    for token in state.tokens:
        token.tag = _LOWER.get(token.tag, token.tag)


def _highlight(code: str, language: str, _attributes: str) -> str:
    language = language.lower()
    if language not in _LANGUAGES or len(code) > limits.MAX_CODE or _LONG_LINE.search(code):
        return ""
    if language == "java" and _WORDS.search(code):
        return ""
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    html: str = highlight(code, get_lexer_by_name(language), HtmlFormatter(nowrap=True))
    return html
