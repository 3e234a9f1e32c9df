"""Import messages into the store, and export them."""
