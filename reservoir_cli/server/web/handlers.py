"""The page's routes and their handlers, which read parameters and the store and fill a template."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from reservoir_cli.context.request import FORMATS
from reservoir_cli.errors import UsageError
from reservoir_cli.messages import ConversationName, StoredMessage, plain_text
from reservoir_cli.reservoir import Reservoir
from reservoir_cli.server.state import ServerState
from reservoir_cli.server.web import access, read_conversations, usage, window
from reservoir_cli.server.web import window_form as question_form
from reservoir_cli.server.web.check_parameters import name_of, number_of, text_of
from reservoir_cli.server.web.conversation_filter import ROLES, ConversationFilter
from reservoir_cli.server.web.rendering import link, link_to_message, render
from reservoir_cli.settings.config import Config

T = TypeVar("T")
_STATIC = Path(__file__).parent / "static"


async def read(request: Request, function: Callable[[Reservoir], T]) -> T:
    """Run a function that reads the store, and return its result."""
    state: ServerState = request.app.state.server
    return await state.reader.run(function)


async def write(request: Request, function: Callable[[Reservoir], T]) -> T:
    """Run a function that changes the store, and return its result."""
    state: ServerState = request.app.state.server
    return await state.writer.run(function)


async def index(request: Request) -> Response:
    """List conversations, or the best matches for a text."""
    query = ConversationFilter.of(request.query_params)
    part = "part" in request.query_params
    # The whole page keeps its form, with what was typed.
    problem = None if part else query.problem

    def look(
        reservoir: Reservoir,
    ) -> tuple[read_conversations.Listing | None, list[tuple[str, str, int]]]:
        listing = None if problem else read_conversations.list_or_search(reservoir, query)
        # Results that follow the search field show channels only in the field of instances.
        is_needed = not part or query.partition or not (listing and listing.total)
        return listing, reservoir.lookup.channels() if is_needed else []

    listing, channels = await read(request, look)
    instances = {name for where, name, _ in channels if where == query.partition}
    return render(
        request,
        "conversation_list.html" if part else "conversations.html",
        status_code=400 if problem else 200,
        problem=problem,
        part=part,
        query=query,
        listing=listing,
        channels=channels,
        partitions=names_of_partitions(channels, query.partition),
        instances=sorted(instances | ({query.instance} if query.instance else set())),
        roles=ROLES,
        gone=number_of(request.query_params, "gone"),
    )


def conversation_of(request: Request) -> ConversationName:
    """Return the conversation in the query parameters; raise UsageError if they name none."""
    partition, instance, conversation = (name_of(request.query_params, name) for name in "pic")
    if partition is None or instance is None:
        raise UsageError("the address names no conversation")
    return partition, instance, conversation


async def conversation(request: Request) -> Response:
    """Show one page of a conversation."""
    name, query = conversation_of(request), request.query_params
    number, at = number_of(query, "page"), number_of(query, "at")
    shown_page = await read(
        request, lambda reservoir: read_conversations.read_conversation(reservoir, name, number, at)
    )
    template = "conversation_messages.html" if "part" in query else "conversation.html"
    return render(request, template, page=shown_page, at=at, gone=number_of(query, "gone"))


async def message(request: Request) -> Response:
    """Redirect a message's permalink to its conversation, or show the whole message or its text."""
    stored = await _find_message(request)
    if "text" in request.query_params:
        return PlainTextResponse(stored.content or plain_text(stored))
    if "whole" in request.query_params:
        return render(
            request, "whole_message.html", shown=read_conversations.show(stored, whole=True)
        )
    if read_conversations.is_document(stored):
        return RedirectResponse(link("/document", p=stored.partition, id=stored.id), 303)
    query = {"p": stored.partition, "i": stored.instance, "c": stored.conversation_id}
    address = link("/conversation", **query, at=stored.id)
    return RedirectResponse(f"{address}#m{stored.id}", 303)


async def document(request: Request) -> Response:
    """Show a document."""
    stored = await _find_message(request)
    page = await read(
        request, lambda store: read_conversations.read_document(store, stored.partition, stored.id)
    )
    return render(request, "conversation.html", page=page, at=None, gone=None)


async def _find_message(request: Request) -> StoredMessage:
    partition = name_of(request.query_params, "p")
    number = number_of(request.query_params, "id")
    if partition is None or number is None:
        raise UsageError("the address names no message")
    return await read(
        request, lambda store: read_conversations.find_message(store, partition, number)
    )


async def delete(request: Request) -> Response:
    """Ask for confirmation to delete a message or a conversation, and then delete it."""
    if "id" in request.query_params:
        return await _delete_message(request)
    name = conversation_of(request)
    page = await read(request, lambda store: read_conversations.read_conversation(store, name, 1))
    if request.method != "POST":
        return render(request, "confirm_delete.html", page=page, shown=None)
    gone = await write(request, lambda reservoir: read_conversations.forget(reservoir, name))
    return RedirectResponse(link("/", p=name[0], gone=gone), 303)


async def _delete_message(request: Request) -> Response:
    stored = await _find_message(request)
    if request.method != "POST":
        shown = read_conversations.show(stored)
        return render(request, "confirm_delete.html", page=None, shown=shown)
    await write(request, lambda reservoir: reservoir.forget([stored.key]))
    name = (stored.partition, stored.instance, stored.conversation_id)
    remaining = await read(request, lambda reservoir: read_conversations.ids_of(reservoir, name))
    if not remaining or read_conversations.is_document(stored):
        return RedirectResponse(link("/", p=stored.partition, gone=1), 303)
    address = link("/conversation", **dict(zip("pic", name, strict=True)), gone=1)
    return RedirectResponse(address, 303)


async def pin(request: Request) -> Response:
    """Pin a message, or unpin it with ``off``, and show it."""
    change = Reservoir.unpin if "off" in request.query_params else Reservoir.pin
    stored = await _find_message(request)
    await write(request, lambda reservoir: change(reservoir, stored.key))
    return RedirectResponse(link_to_message(stored), 303)


async def ask(request: Request) -> Response:
    """Show why each message is or is not in the context of a question."""
    query, part = request.query_params, "part" in request.query_params
    question, problem = question_form.read_form(query)
    if problem and part:
        raise problem
    state: ServerState = request.app.state.server
    default_store = state.config.store_location()
    channels = await read(request, lambda reservoir: reservoir.lookup.channels())
    view = None
    if question.asked and not problem:
        try:
            view = await read(
                request, lambda reservoir: window.choose(reservoir, question, default_store)
            )
        except UsageError as error:  # an unknown model, or a budget that is too small
            if part:
                raise
            problem = error
    partition = question.partition or default_partition(channels, state.config)
    model = None if problem else question.model
    floor = await read(
        request, lambda reservoir: window.floor_in_force(reservoir, partition, model)
    )
    return render(
        request,
        "window_result.html" if part and view else "window.html",
        status_code=400 if problem else 200,
        problem=problem,
        question=question,
        typed={name: text_of(query, name) for name in ("model", "budget")},
        shown=view,
        sliders=question_form.sliders(
            question.options,
            view.usual if view else state.config.settings(partition, model),
            floor,
        ),
        models=[] if part and view else [model.name for model in state.config.known_models()],
        partitions=names_of_partitions(channels, partition),
        formats=FORMATS,
        default_partition=partition,
        default_budget=(
            view.window.budget.available
            if view and question.budget is None
            else question_form.BUDGET
        ),
    )


def names_of_partitions(channels: list[tuple[str, str, int]], current: str | None) -> list[str]:
    """Return the names to select from; the one that is shown may have no messages."""
    return sorted({partition for partition, _, _ in channels} | ({current} if current else set()))


def default_partition(channels: list[tuple[str, str, int]], config: Config) -> str:
    """Return the configured partition if it has messages, else the one with the most messages."""
    configured = config.settings().partition
    partitions = [partition for partition, _, _ in channels]
    return configured if configured in partitions or not partitions else partitions[0]


async def show_usage(request: Request) -> Response:
    """Show usage over time and the contents of the store."""
    return render(request, "usage.html", use=await read(request, usage.summarize))


async def _redirect_to_icon(_request: Request) -> Response:
    return RedirectResponse("/ui/static/icon.svg")


icon = access.open_to_all(_redirect_to_icon)


def routes() -> Sequence[BaseRoute]:
    """Return the routes below ``/ui``."""
    return [
        _view("/", index),
        _view("/conversation", conversation),
        _view("/document", document),
        _view("/message", message),
        _view("/delete", delete, "GET", "POST"),
        _view("/pin", pin, "POST"),
        _view("/context", ask),
        _view("/usage", show_usage),
        _view("/leave", access.leave, "POST"),
        Route("/enter", access.open_to_all(access.enter), methods=["GET", "POST"]),
        Route("/favicon.ico", icon),
        Route("/proof", access.open_to_all(access.prove)),
        Route("/csp", access.open_to_all(access.count_violation), methods=["POST"]),
        Mount("/static", app=StaticFiles(directory=_STATIC)),
    ]


def _view(path: str, view: access.View, *methods: str) -> Route:
    return Route(path, access.for_sessions(view), methods=list(methods or ("GET",)))
