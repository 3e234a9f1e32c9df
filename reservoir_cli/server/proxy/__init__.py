"""The proxy: requests to a model pass through, with what fits them added, and are stored."""
