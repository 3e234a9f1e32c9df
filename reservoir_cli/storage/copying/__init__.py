"""Copy a whole store to another."""
