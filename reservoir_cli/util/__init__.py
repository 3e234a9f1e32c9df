"""Small helpers that know nothing of messages or stores."""
