"""``reservoir trim``: trim the message list of a tool loop to a budget."""

import json
from functools import partial
from typing import Annotated, Any

import typer

from reservoir_cli.chat.trim import find_turn_start, trim_history
from reservoir_cli.cli import console, options
from reservoir_cli.cli.global_options import parse_path
from reservoir_cli.cli.options import argument, option, tokens_option
from reservoir_cli.errors import ReservoirError, UsageError, unknown_format
from reservoir_cli.settings.config import required_window
from reservoir_cli.tokens import storing_counter
from reservoir_cli.transfer.reading.input_files import read_text
from reservoir_cli.util.progress import counted

_LEAST = 500  # the smallest budget that holds a question and its reply
_FORMATS = ("openai", "anthropic", "auto")
#: Keys of a request body: the second of OpenAI's Responses API, the third of Gemini's.
_KEYS = ("messages", "input", "contents")
_WANTED = "give a list of messages, or a request body that has one"


def trim(
    ctx: typer.Context,
    iteration: Annotated[int, option("K", "Number of the request in the turn, from 1.", min=1)],
    file: Annotated[
        str, argument("[FILE|-]", "A JSON list of messages, or a request body; - reads stdin.")
    ] = "-",
    budget: Annotated[
        int | None,
        tokens_option(
            "Tokens for the old messages (default: the setting trim_budget_tokens).", least=None
        ),
    ] = None,
    turn_start: Annotated[
        int | None,
        option("I", "Index of the turn's first message (default: last question).", min=0),
    ] = None,
    form: Annotated[
        str, option("NAME", "openai, anthropic or auto.", "--format", choices=_FORMATS)
    ] = "auto",
    partition: options.Partition = None,
    model: options.Model = None,
) -> None:
    """Trim the message list of a tool loop to a budget.

    Prints the list to send with the next request. Nothing is trimmed without a budget or in the
    first iteration; a budget below 500 counts as 500.

    The first message, system messages and the current turn are never trimmed. If the input is a
    request body with a list of messages, or with OpenAI's list input, the output is one, too.
    """
    if form not in _FORMATS:
        raise unknown_format(form, _FORMATS)
    config = options.load_config(ctx)
    settings = config.settings(partition, model)
    required_window(config, model, settings)
    tokens = settings.trim_budget_tokens if budget is None else budget
    if 0 < tokens < _LEAST:
        console.note(f"the budget of {tokens} was raised to {_LEAST}")
        tokens = _LEAST
    document = _read(file)
    key, messages = _messages(document)
    start = find_turn_start(messages) if turn_start is None else turn_start
    if start > len(messages):
        raise UsageError(
            f"--turn-start {start} is beyond the end of {len(messages)} messages",
            hint="it counts from 0; without it the turn begins at the last question",
        )
    trim_before = partial(
        trim_history,
        messages,
        iteration=iteration,
        budget=tokens,
        counter=storing_counter(settings.token_counter),
        multiplier=settings.token_multiplier,
        attachment_tokens=settings.attachment_tokens,
    )
    rest = trim_before(turn_start=start)
    console.write_json({**document, key: rest} if key else rest)
    if turn_start is None and start <= 1 and trim_before(turn_start=len(messages)) is not messages:
        console.note(
            f"nothing was trimmed: the current turn begins at message {start}, as no later one is "
            "a question; --turn-start I begins it later"
        )
    console.aside(f"{counted(len(messages), 'message')}, {len(messages) - len(rest):,} trimmed")


def _read(file: str) -> Any:
    if file == "-":
        text = options.text_or_stdin("-", "list of messages")
    else:
        text = read_text(parse_path(file))[0]
    name = "stdin" if file == "-" else file
    try:
        document = json.loads(text)
        _require_finite(document, name)
    except (ValueError, RecursionError):
        raise ReservoirError(f"{name} is not JSON", hint=_WANTED) from None
    return document


def _require_finite(document: Any, name: str) -> None:
    """Refuse NaN and numbers too large for a float, which no request can hold."""
    try:
        json.dumps(document, allow_nan=False)
    except ValueError:
        raise ReservoirError(
            f"{name} has a number that is too large, or NaN", hint="numbers end at 1.8e308"
        ) from None


def _messages(document: Any) -> tuple[str | None, list[dict[str, Any]]]:
    key, messages = None, document
    if isinstance(document, dict):
        key = next((name for name in _KEYS if isinstance(document.get(name), list)), None)
        messages = document[key] if key else None
    if not isinstance(messages, list):
        raise ReservoirError("there is no list of messages", hint=_WANTED)
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise ReservoirError(f"message {index} is not a JSON object", hint=_WANTED)
    return key, messages
