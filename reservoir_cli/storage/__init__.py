"""The message store, in an SQLite file or on a PostgreSQL server."""
