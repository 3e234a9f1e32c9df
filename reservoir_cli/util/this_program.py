"""The command that starts this program again."""

import sys

#: ``-P`` excludes the current folder from the modules' path: its modules may be anybody's.
IN_PYTHON = (sys.executable, "-P", "-m", "reservoir_cli")
