"""Exempt long administrative work from the timeouts of a server, a database or a role."""

#: The timeouts that end a transaction; a write transaction sets ``lock_timeout`` itself.
_OF_TRANSACTIONS = ("statement_timeout", "idle_in_transaction_session_timeout")
_TRANSACTION_TIMEOUT = 170_000  #: The first version of PostgreSQL with ``transaction_timeout``.


def in_transaction(version: int) -> str:
    """Return the statements that lift the timeouts until the transaction ends."""
    return "; ".join(f"SET LOCAL {name} = 0" for name in _names(version))


def for_connection(version: int) -> str:
    """Return libpq's ``options`` for a connection without timeouts."""
    return " ".join(f"-c {name}=0" for name in (*_names(version), "lock_timeout"))


def are_set(version: int) -> str:
    """Return the query for whether a connection has timeouts that end a single statement."""
    names = (*_names(version), "lock_timeout")
    return f"SELECT {' OR '.join(f'''current_setting('{name}') <> '0' ''' for name in names)}"


def _names(version: int) -> tuple[str, ...]:
    newer = ("transaction_timeout",) if version >= _TRANSACTION_TIMEOUT else ()
    return (*_OF_TRANSACTIONS, *newer)
