"""A part of a message with its own vector."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Passage(NamedTuple):
    """A part of a message with its own vector.

    :param start: the offset of its first character in the message's text.
    :param end: the offset after its last character.
    :param vector: float32, shape (dimensions,), length 1.
    """

    message_id: int
    number: int
    start: int
    end: int
    vector: "NDArray[np.float32]"
