"""Build a context window from a question."""
