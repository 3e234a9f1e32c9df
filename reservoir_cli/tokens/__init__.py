"""Count the tokens of a text.

    approximate        the default: an estimate by measured costs, standard library only
    ratio              4 characters per token for prose, 3 for code
    tiktoken:ENCODING  exact for OpenAI's models; needs tiktoken and its vocabulary
    huggingface:PATH   exact for any model with a ``tokenizer.json``
    anthropic:MODEL    the provider's count of the finished request, over the network

Callers use ``TokenCounter`` and ``load_counter``. An unavailable counter is an error: it is never
silently replaced, because the budget would then be measured in different tokens.
"""

from reservoir_cli.tokens.anthropic import AnthropicCounter
from reservoir_cli.tokens.counter import TokenCounter
from reservoir_cli.tokens.counter_by_name import counter_id, load_counter, storing_counter
from reservoir_cli.tokens.estimates import ApproximateCounter, RatioCounter

__all__ = [
    "AnthropicCounter",
    "ApproximateCounter",
    "RatioCounter",
    "TokenCounter",
    "counter_id",
    "load_counter",
    "storing_counter",
]
