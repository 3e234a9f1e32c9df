"""Keep a store in sync with the histories of other programs."""
