"""The plugin for ``llm``: fragments and tools from a store.

    llm -f 'reservoir:why did we drop Redis?' "Is the reason still valid?"
    llm -T Reservoir "What did I say about heat pumps?"

``llm`` imports this module whenever it starts, so other modules of ours are imported only when
they are needed.
"""

from collections.abc import Callable
from typing import Any

import llm


@llm.hookimpl  # type: ignore[untyped-decorator]
def register_fragment_loaders(register: Callable[..., None]) -> None:
    """Register the prefix ``reservoir:``."""
    register("reservoir", load_fragment)


@llm.hookimpl  # type: ignore[untyped-decorator]
def register_tools(register: Callable[..., None]) -> None:
    """Register the toolbox ``Reservoir``."""
    register(Reservoir)


def load_fragment(question: str) -> list[llm.Fragment]:
    """Recall what was said about a question, such as -f 'reservoir:why did we drop it?'."""
    text = _answer("fragment", question=question)
    return [llm.Fragment(text, f"reservoir:{question}")] if text else []


class Reservoir(llm.Toolbox):  # type: ignore[misc]
    """Tools that read the user's earlier conversations and store notes beside them."""

    def recall(self, question: str, budget: int = 1_500) -> str:
        """Recall what was said about a question, as dated quotes. Spell out names and dates."""
        return _answer("recall", question=question, budget=budget)

    def search(self, query: str, limit: int = 10) -> str:
        """List single earlier messages by words and meaning, best first."""
        return _answer("search", query=query, limit=limit)

    def remember(self, text: str) -> str:
        """Store a decision, fact or preference in full sentences, when the user asks for it."""
        return _answer("remember", text=text)


def _answer(tool: str, **arguments: Any) -> str:
    from reservoir_cli.agents import llm_answers

    return llm_answers.answer(tool, arguments)
