"""How many tokens a text costs.

    approximate        the default: byte classes, calibrated on o200k, standard library only
    ratio              4 characters a token for prose, 3 for code
    tiktoken:ENCODING  exact for OpenAI's models; the optional library and its vocabulary
    huggingface:PATH   exact for any model with a ``tokenizer.json``
    anthropic:MODEL    the provider's own count of the finished request, over the network

Callers see ``TokenCounter`` and ``load_counter``. A counter that is asked for and cannot
work is an error, never silently replaced: a budget kept by another counter is not kept.
"""

from reservoir_cli.errors import UsageError
from reservoir_cli.tokens.anthropic import AnthropicCounter
from reservoir_cli.tokens.approximate import ApproximateCounter
from reservoir_cli.tokens.counter import TokenCounter
from reservoir_cli.tokens.huggingface import HuggingFaceCounter
from reservoir_cli.tokens.ratio import RatioCounter
from reservoir_cli.tokens.tiktoken import TiktokenCounter

__all__ = [
    "AnthropicCounter",
    "ApproximateCounter",
    "HuggingFaceCounter",
    "RatioCounter",
    "TiktokenCounter",
    "TokenCounter",
    "counter_id",
    "load_counter",
    "storing_counter",
]


def load_counter(name: str, *, offline: bool = False) -> TokenCounter:
    """Load the counter a setting names.

    :param name: ``approximate``, ``ratio``, ``tiktoken:ENCODING``, ``huggingface:PATH`` or
        ``anthropic:MODEL``.
    :param offline: refuse what would need the network.
    :raises UsageError: there is no such counter.
    :raises ModelUnavailableError: it is not on this machine.
    """
    match name.partition(":"):
        case ("approximate", "", ""):
            return ApproximateCounter()
        case ("ratio", "", ""):
            return RatioCounter()
        case ("tiktoken", ":", encoding) if encoding:
            return TiktokenCounter(encoding)
        case ("huggingface", ":", path) if path:
            return HuggingFaceCounter(path)
        case ("anthropic", ":", model) if model:
            return AnthropicCounter(model, offline=offline)
        case _:
            raise UsageError(
                f"unknown token counter: {name!r}",
                hint="one of approximate, ratio, tiktoken:ENCODING, huggingface:PATH, "
                "anthropic:MODEL",
            )


def counter_id(counter: TokenCounter) -> str:
    """Name and version of a counter, as they are stored with a count."""
    if isinstance(counter, AnthropicCounter):  # single texts are approximated
        counter = ApproximateCounter()
    return f"{counter.name} {counter.version}"


def storing_counter(name: str) -> TokenCounter:
    """The counter for messages that are stored: nothing is asked of the network for it."""
    return load_counter("approximate" if name.startswith("anthropic:") else name)
