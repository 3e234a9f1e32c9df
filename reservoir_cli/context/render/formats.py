"""Render the finished window in any format. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, assert_never, cast, overload

from reservoir_cli.chat.turn import Turn
from reservoir_cli.context.budget import Meter
from reservoir_cli.context.finished_window import FinishedWindow, all_turns, ends_with_a_question
from reservoir_cli.context.render import request_bodies, text_and_markdown
from reservoir_cli.context.render.context_frame import wrap
from reservoir_cli.context.request import FORMATS, PROVIDERS, Format
from reservoir_cli.errors import UsageError, unknown_format
from reservoir_cli.messages import check_text
from reservoir_cli.settings.models import find_model

if TYPE_CHECKING:
    from reservoir_cli.context.render.json import WindowMessage


class ContextWindow(FinishedWindow):
    """The messages for a model, within a budget, with a reason for each."""

    __slots__ = ()

    @property
    def turns(self) -> list[Turn]:
        """The whole window in order, the current message last."""
        return all_turns(self.request, self.selection)

    @property
    def messages(self) -> "tuple[WindowMessage, ...]":
        """All printed messages, in order."""
        from reservoir_cli.context.render.json import messages_of

        return messages_of(self)

    @overload
    def to(self, form: Literal["text", "markdown"], *, explain: bool = False) -> str: ...
    @overload
    def to(
        self,
        form: Literal["json", "openai", "azure", "ollama", "anthropic"],
        *,
        explain: bool = False,
    ) -> dict[str, Any]: ...
    @overload
    def to(self, form: str | None = None, *, explain: bool = False) -> str | dict[str, Any]: ...
    def to(self, form: str | None = None, *, explain: bool = False) -> str | dict[str, Any]:
        """Render the window in a format, as a text or as a JSON document (a dict).

        :param form: a format of ``reservoir context``; the requested one by default.
        :param explain: with ``json``, add every candidate and its reason.
        :raises UsageError: the format is unknown, or there is nothing to send.
        """
        target = self.request.format if form in (None, "") else parse_format(form)
        if target == "json":
            from reservoir_cli.context.render.json import to_json

            return to_json(self, explain=explain)
        turns = replace(self, request=self.request._replace(format=target)).turns
        if not (ends_with_a_question(turns) if target in PROVIDERS else turns):
            raise self._nothing_to_send()
        if target in ("text", "markdown"):
            return text_and_markdown.render_framed(turns, markdown=target == "markdown")
        return render(turns, target, self.request.model, self.max_tokens, self.budget.window)

    def _nothing_to_send(self) -> UsageError:
        fits, raised = "", ""
        if self.lacks_room:
            fits, raised = f" fits in {self.budget.available:,} tokens", "raise --budget, or "
        return UsageError(
            f"there is nothing to send: no question, and no history that ends with one{fits}",
            hint=f'{raised}give a question: reservoir context "…"',
        )

    @property
    def max_tokens(self) -> int:
        """The most tokens of an answer, by the reserve, the model, and the rest of the window."""
        model = find_model(self.request.model) if self.request.model else None
        limit = model.output_limit if model and model.output_limit else self.budget.reserve
        return max(1, min(self.budget.reserve, limit, self.budget.window - self.used))


def parse_format(name: str) -> Format:
    """Return the format with this name, or raise UsageError."""
    check_text("format", name)
    if name in FORMATS:
        return cast(Format, name)
    raise unknown_format(name, FORMATS)


def render(
    turns: Sequence[Turn],
    form: Format,
    model: str | None,
    max_tokens: int,
    window: int | None = None,
) -> str | dict[str, Any]:
    """Render turns in a format, without a frame; ``json`` counts and reads as ``text``."""
    match form:
        case "text" | "json":
            return text_and_markdown.to_text(turns)
        case "markdown":
            return text_and_markdown.to_markdown(turns)
        case "openai" | "azure":
            return request_bodies.to_openai(turns, model)
        case "ollama":
            return request_bodies.to_ollama(turns, model, window)
        case "anthropic":
            return request_bodies.to_anthropic(turns, model, max(1, max_tokens))
    assert_never(form)


def count_turns(turns: Sequence[Turn], form: Format, meter: Meter) -> int:
    """Count the tokens of turns in the format they are printed in, plus 4 for each message."""
    if not turns:
        return 0
    rendered = render(turns, form, None, 1)
    if isinstance(rendered, str):
        return meter.count(rendered, messages=len(turns))
    return sum(
        meter.count(message_text, messages=1)
        for message_text in request_bodies.message_texts(rendered)
    )


def count_frame(meter: Meter) -> int:
    """Count the tokens of the frame of a text."""
    return meter.count(wrap("") + "\n\n")


def count_framed(turns: Sequence[Turn], form: Format, meter: Meter) -> int:
    """Count the tokens of a whole text in its frame."""
    return meter.count(
        text_and_markdown.render_framed(turns, markdown=form == "markdown"), messages=len(turns)
    )
