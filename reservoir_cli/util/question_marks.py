"""What counts as a question in ranking and in prompts: a text with a question mark."""


def has_question_mark(text: str) -> bool:
    """Return whether a text contains a question mark, of any width."""
    return "?" in text or "\uff1f" in text
