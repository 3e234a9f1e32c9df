"""Timeouts and intervals: how long Reservoir waits, for what, and how often it looks, in seconds.

A door waits as long as its user would: a command for an import that is writing, a hook not at all
noticeably. The server's own times are in ``server/limits.py``.
"""

# A locked store

#: If the caller names no other time: an import writes for seconds at a time.
LOCKED_STORE = 30.0
#: The same for ``serve`` and ``mcp``: a client waits, and nobody sees who is writing.
LOCKED_SERVER = 10.0
LOCKED_STORE_OF_LLM = 10.0  #: The same for ``llm``, which is about to print an answer.
LOCKED_STORE_OF_HOOK = 0.5  #: The same for a hook: its client waits for it before each prompt.
#: The same for completions: none are better than a shell that hangs.
LOCKED_STORE_OF_COMPLETION = 0.1
LOCKED_STORE_OF_RUN = 0.1  #: The same for recording a run, which is left out otherwise.
#: The same for writes that a request to the server waits for, all of them optional.
LOCKED_STORE_OF_REQUEST = 0.02
#: A request to a model waits for recalled messages: people do not notice less.
RECALL_OF_REQUEST = 0.3
CHECKPOINT = 5.0  #: A checkpoint waits for readers; a question takes less than a second.
OWN_FILE = 1.0  #: Locks of files that nobody else uses, such as a copy that is repaired.

# A server of PostgreSQL

#: Before the second attempt to connect to a server that restarts, each further pause twice as long,
#: and the number of attempts. If the URL names several, one of them takes over in 12 seconds.
RESTART, TRIES_OF_ONE, TRIES_OF_SEVERAL = 0.1, 5, 8
NO_CONNECTION_LEFT = 0.5  #: Between two attempts while all connections are in use.
#: Before each further attempt after a lost connection, which a pool notices with a delay.
LOST_CONNECTION = (0.0, 1.0)
#: Before the second attempt of a write that conflicts with others, as above, and their number.
CONFLICT, TRIES_OF_CONFLICT = 0.02, 8
CHANGE_OF_TABLES = 3.0  #: A change of tables waits for a lock: everyone else waits behind it.

# Syncing

SYNC_WATCHING = 30  #: Between two runs of ``sync --watch``.
SYNC_IN_PAUSES = 60.0  #: Between two syncs of a running server.
SYNC_BY_TIMER = 600  #: Between two runs of the timer that ``sync --timer`` prints.
UNFINISHED_TURN = 600.0  #: An unfinished turn is stored once its file has not changed for so long.

# Other programs

CLIENT_COMMAND = 60.0  #: A client of ``connect`` runs its own command, which may start a runtime.
CLIENT_FOLDERS = 2.0  #: A client of the MCP server lists the folders that it works in.
CLIPBOARD = 10.0  #: The clipboard's program takes a text.
PROCESS_LIST = 10.0  #: ``ps`` describes a process.
OTHER_END_OF_PIPE = 2.0  #: A pipe that is named as a file has a program at its other end.
FILE_IN_USE = 2.0  #: A virus scanner releases a file that is to be replaced, on Windows.
#: A server proves that it knows the token, starts, and stops: it finishes answers first.
SERVER_ANSWER, SERVER_START, SERVER_STOP = 10.0, 60.0, 60.0
IDLE_MODEL = 300.0  #: Without a call of MCP, the store is closed and the model unloaded.
LAST_CALL = 2.0  #: A call in progress ends after the session of its MCP client.
