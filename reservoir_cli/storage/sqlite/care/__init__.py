"""Check, repair, replace and clean a store's file."""
