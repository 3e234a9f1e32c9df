"""What every counter of tokens offers."""

from typing import Protocol


class TokenCounter(Protocol):
    """Counts the tokens of a text.

    A stored count is valid as long as ``name`` and ``version`` are those it was made with.
    """

    @property
    def name(self) -> str:
        """What the setting ``token_counter`` says, such as ``tiktoken:o200k_base``."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever the same text could get another count."""
        ...

    @property
    def exact(self) -> bool:
        """False for an estimate, which is printed as one and gets a safety factor."""
        ...

    def count(self, text: str) -> int:
        """Count the tokens of a text, without what a chat format adds around it.

        :returns: 0 for the empty text, at least 1 for any other.
        """
        ...
