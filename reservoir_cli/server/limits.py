"""Limits of the server: bytes and seconds; those of locked stores are in ``timeouts``."""

# Requests

MAX_BODY = 32 << 20  # the largest body of a request: long histories with pictures are a few MB
#: Larger bodies are parsed in a thread, so as not to block the event loop.
PARSED_IN_THREAD = 256 << 10
MAX_CONNECTIONS = 512  # the most connections that are open at the same time
#: The times to wait for the next piece of a request's head, and of its body.
HEAD_TIMEOUT = READ_TIMEOUT = 60.0
#: The time in which the rest of a body that is too large is read, and not kept, and the pause after
#: which its client is no longer sending.
DISCARD_TIMEOUT, DISCARD_PAUSE = 10.0, 0.5
#: The most characters of a conversation's id, and of a path in the log.
MAX_ID, MAX_LOGGED_PATH = 200, 100

# The page

#: The time for which a code is valid, and after which an idle session ends.
CODE_LIFETIME, SESSION_LIFETIME = 60.0, 12 * 3600.0
MAX_SESSIONS = 32  # the most sessions that are valid at a time; the oldest is dropped
#: The largest form, and the most fields of one: forms hold names and numbers.
MAX_FORM, MAX_FIELDS = 64 << 10, 200
#: The most characters of a message that are rendered, and of a code block that is highlighted.
MAX_RENDERED, MAX_CODE = 20_000, 10_000
RENDER_TIME = 2.0  # of a page; after it, the other messages are shown as plain text

# Models and their answers

#: The time to connect to a model. Reading has no limit: a model may think for long.
CONNECT_TIMEOUT = 10.0
#: The most idle connections to models, and for how long they stay open.
IDLE_CONNECTIONS, IDLE_TIMEOUT = 32, 30.0
#: The largest answer that is read; a larger one is still relayed, but not stored.
MAX_ANSWER = 32 << 20
#: The chunks of an answer that are relayed, and the lines of it that are read, at a time: other
#: requests wait meanwhile.
CHUNKS_AT_A_TIME, LINES_AT_A_TIME = 32, 256
SNIFFED = 1_000  # the beginning of a stream without a type that is searched for an event
#: The most answers whose conversations at the provider are remembered.
MAX_REMEMBERED_ANSWERS = 10_000

# Recalled messages

#: The most tokens that are added to one question, and to all questions of a conversation.
BUDGET, CONVERSATION_BUDGET = 1_000, 8_000
MIN_BUDGET = 100  # the smallest remaining budget in tokens for which anything is recalled
FULL_WINDOW = 0.9  # the share of the model's context window above which nothing is added
TALK_TURNS = 12  # the most turns before a question that are compared with the store

#: How long the server waits for the model before it listens; compiling one takes longer.
WARMING = 5.0

# Work in pauses

#: The time without a question that counts as a pause, and the longest delay of background work.
PAUSE, MAX_DELAY = 0.1, 2.0
#: The longest delay of work that slows down many questions: embedding the messages of two seconds
#: takes half a second.
MAX_LONG_DELAY = 30.0
#: How long a transaction may give way to questions: other programs wait to write meanwhile.
MAX_HOLD = 0.4
RETRY_DELAY = 5.0  # the time before another attempt to store exchanges
#: The most exchanges that wait while the store cannot be written; the oldest are dropped.
MAX_WAITING = 500

# The end of the process

#: The time that answers in progress may take, and then queued work of each thread.
LAST_ANSWERS, LAST_WORK = 10, 30.0
