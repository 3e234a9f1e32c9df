"""The message shapes of the providers."""
