"""The command line: it gathers what was typed, calls one verb, and prints.

What is set here holds before anything heavy is loaded.
"""

import gc
import os

# A command lives for moments and leaves few cycles: looking for them while modules load takes a
# tenth of its time. Long runs still collect, less often.
gc.set_threshold(50_000, 20, 50)
# numpy starts a thread for every processor otherwise, which takes longer than its work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
