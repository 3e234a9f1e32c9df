"""The proxy: add recalled messages to requests, forward them to a model, and store both turns."""
