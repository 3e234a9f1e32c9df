"""The command line: parse arguments, call one function of the library, print its result.

Environment variables set here take effect before heavy libraries are imported.
"""

import os

# Otherwise numpy starts a thread per processor, which takes longer than its work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
