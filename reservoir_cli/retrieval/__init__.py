"""Find messages: embed them, rank them, and search."""
