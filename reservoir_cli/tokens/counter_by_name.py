"""Load the counter that a setting names, and name the one that counted a stored message."""

from reservoir_cli.errors import UsageError
from reservoir_cli.tokens.anthropic import AnthropicCounter
from reservoir_cli.tokens.counter import TokenCounter
from reservoir_cli.tokens.estimates import ApproximateCounter, RatioCounter
from reservoir_cli.tokens.huggingface import HuggingFaceCounter
from reservoir_cli.tokens.tiktoken import TiktokenCounter
from reservoir_cli.util import installed_plugins


def load_counter(name: str, *, offline: bool = False) -> TokenCounter:
    """Load the counter that the setting ``token_counter`` names.

    :param name: ``approximate``, ``ratio``, ``tiktoken:ENCODING``, ``huggingface:PATH`` or
        ``anthropic:MODEL``, or ``SCHEME:ARGUMENT`` of a plugin.
    :param offline: refuse counters that need the network.
    :raises UsageError: the counter is unknown.
    :raises ModelUnavailableError: the counter is not available on this machine.
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
            return _load_of_plugin(name)


def _load_of_plugin(name: str) -> TokenCounter:
    counter: TokenCounter | None = installed_plugins.make("counters", name)
    if counter is None:
        others = "".join(
            f", {scheme}:ARGUMENT" for scheme in installed_plugins.find_plugins("counters")
        )
        raise UsageError(
            f"unknown token counter: {name!r}",
            hint="one of approximate, ratio, tiktoken:ENCODING, huggingface:PATH, "
            f"anthropic:MODEL{others}",
        )
    return counter


def storing_counter(name: str) -> TokenCounter:
    """Load the counter for storing messages, which never uses the network."""
    return load_counter("approximate" if name.startswith("anthropic:") else name)


def counter_id(counter: TokenCounter) -> str:
    """Return the name and version of a counter, as stored with a count."""
    if isinstance(counter, AnthropicCounter):  # it estimates single texts
        counter = ApproximateCounter()
    return f"{counter.name} {counter.version}"
