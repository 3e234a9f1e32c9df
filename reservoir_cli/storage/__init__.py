"""Where messages are kept."""
