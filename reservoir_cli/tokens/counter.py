"""The protocol of token counters."""

from typing import Protocol

PER_MESSAGE = 4  # tokens that a provider adds to each message of a request


class TokenCounter(Protocol):
    """A counter of tokens; a stored count is valid while ``name`` and ``version`` are unchanged."""

    @property
    def name(self) -> str:
        """The value of the setting ``token_counter``, such as ``tiktoken:o200k_base``."""

    @property
    def version(self) -> str:
        """The version, which changes whenever a text's count could change."""

    @property
    def exact(self) -> bool:
        """Whether counts are exact; estimates are marked when printed and get a safety factor."""

    def count(self, text: str) -> int:
        """Count the tokens of a text without a chat format: at least 1, or 0 if it is empty."""
