"""The ways in and out of the store."""
