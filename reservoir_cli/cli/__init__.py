"""The command line: it gathers what was typed, calls one verb, and prints.

What is set here holds before anything heavy is loaded.
"""

import os

# numpy starts a thread for every processor otherwise, which takes longer than its work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
