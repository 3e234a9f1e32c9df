"""Find messages of a store: candidates, words and vectors."""
