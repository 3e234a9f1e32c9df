"""Store what passes through the proxy."""
