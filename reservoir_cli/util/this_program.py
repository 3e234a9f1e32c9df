"""How this program starts itself again."""

import sys

#: Not with the modules of the folder that it is started in, which may be a stranger's.
IN_PYTHON = (sys.executable, "-P", "-m", "reservoir_cli")
