"""The routes of the page: each reads its address, asks the store, and fills a template."""

from collections.abc import Callable
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from reservoir_cli.context.types import FORMATS
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import Key, plain_text
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server.state import ServerState
from reservoir_cli.server.web import conversations, usage, window
from reservoir_cli.server.web import window_form as question_form
from reservoir_cli.server.web.query_parameters import ROLES, Wanted, name_of, number_of
from reservoir_cli.server.web.rendering import link, render
from reservoir_cli.settings.config import Config

T = TypeVar("T")


async def read(request: Request, function: Callable[[Reservoir], T]) -> T:
    """Return what a function returns for the open store."""
    state: ServerState = request.app.state.server
    return await state.reader.run(function)


async def write(request: Request, function: Callable[[Reservoir], T]) -> T:
    """Return what a function that changes the store returns."""
    state: ServerState = request.app.state.server
    return await state.writer.run(function)


async def index(request: Request) -> Response:
    """List conversations, or messages that a text was found in."""
    wanted = Wanted.of(request.query_params)

    def look(reservoir: Reservoir) -> tuple[conversations.Listing, list[tuple[str, str, int]]]:
        return conversations.list_or_search(reservoir, wanted), reservoir.lookup.places()

    listing, places = await read(request, look)
    part = "part" in request.query_params
    return render(
        request,
        "conversation_list.html" if part else "conversations.html",
        wanted=wanted,
        listing=listing,
        places=places,
        partitions=sorted({partition for partition, _, _ in places}),
        instances=sorted({name for where, name, _ in places if where == wanted.partition}),
        roles=ROLES,
        gone=number_of(request.query_params, "gone"),
    )


def thread_of(request: Request) -> conversations.Thread:
    """Return the conversation that an address names.

    :raises UsageError: it names none.
    """
    partition, instance, conversation = (name_of(request.query_params, name) for name in "pic")
    if partition is None or instance is None:
        raise UsageError("the address names no conversation")
    return partition, instance, conversation


async def conversation(request: Request) -> Response:
    """Show a conversation, a page at a time."""
    thread, query = thread_of(request), request.query_params
    page, at = number_of(query, "page"), number_of(query, "at")
    talk = await read(
        request, lambda reservoir: conversations.read_thread(reservoir, thread, page, at)
    )
    template = "conversation_messages.html" if "part" in query else "conversation.html"
    return render(request, template, talk=talk, at=at, gone=number_of(query, "gone"))


async def message(request: Request) -> Response:
    """Lead from the permalink of a message to its place; or show it whole, or only its text."""
    partition, number = _message_of(request)
    found = await read(
        request, lambda reservoir: conversations.find_message(reservoir, partition, number)
    )
    if "text" in request.query_params:
        return PlainTextResponse(found.content or plain_text(found))
    if "whole" in request.query_params:
        return render(request, "whole_message.html", said=conversations.show(found, whole=True))
    address = link(
        "/conversation", p=partition, i=found.instance, c=found.conversation_id, at=number
    )
    return RedirectResponse(f"{address}#m{number}", 303)


def _message_of(request: Request) -> tuple[str, int]:
    partition = name_of(request.query_params, "p")
    number = number_of(request.query_params, "id")
    if partition is None or number is None:
        raise UsageError("the address names no message")
    return partition, number


async def delete(request: Request) -> Response:
    """Ask whether a message or a conversation is to be deleted, and delete it."""
    if "id" in request.query_params:
        return await _delete_message(request)
    thread = thread_of(request)
    talk = await read(request, lambda reservoir: conversations.read_thread(reservoir, thread, 1))
    if request.method != "POST":
        return render(request, "confirm_delete.html", talk=talk, said=None)
    gone = await write(request, lambda reservoir: conversations.forget(reservoir, thread))
    return RedirectResponse(link("/", p=thread[0], gone=gone), 303)


async def _delete_message(request: Request) -> Response:
    partition, number = _message_of(request)
    found = await read(
        request, lambda reservoir: conversations.find_message(reservoir, partition, number)
    )
    if request.method != "POST":
        return render(request, "confirm_delete.html", talk=None, said=conversations.show(found))
    await write(request, lambda reservoir: reservoir.forget([Key(partition, number)]))
    thread = (partition, found.instance, found.conversation_id)
    left = await read(request, lambda reservoir: conversations.ids_of(reservoir, thread))
    if not left:
        return RedirectResponse(link("/", p=partition, gone=1), 303)
    address = link("/conversation", **dict(zip("pic", thread, strict=True)), gone=1)
    return RedirectResponse(address, 303)


async def ask(request: Request) -> Response:
    """Show why each message is in the window of a question, or not."""
    query = request.query_params
    question = question_form.Question.of(query)
    state: ServerState = request.app.state.server
    usual_store = state.config.store_location()
    places = await read(request, lambda reservoir: reservoir.lookup.places())
    shown = None
    if question.asked:
        shown = await read(
            request, lambda reservoir: window.choose(reservoir, question, usual_store)
        )
    partition = question.partition or fullest(places, state.config)
    floor = await read(
        request, lambda reservoir: window.floor_in_force(reservoir, partition, question.model)
    )
    part = "part" in query and shown is not None
    return render(
        request,
        "window_result.html" if part else "window.html",
        question=question,
        shown=shown,
        sliders=question_form.sliders(
            question.options,
            shown.usual if shown else state.config.settings(partition, question.model),
            floor,
        ),
        models=[] if part else [model.name for model in state.config.known_models()],
        partitions=sorted({partition for partition, _, _ in places}),
        formats=FORMATS,
        default_partition=partition,
    )


def fullest(places: list[tuple[str, str, int]], config: Config) -> str:
    """Return the partition of the settings if it holds anything, else the fullest."""
    usual = config.settings().partition
    held = [partition for partition, _, _ in places]
    return usual if usual in held or not held else held[0]


async def use(request: Request) -> Response:
    """Show what contexts took over time, and what the store holds."""
    return render(request, "usage.html", use=await read(request, usage.summarize))
