"""Finding messages: indexing, ranking, search."""
