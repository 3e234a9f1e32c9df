"""``python -m reservoir_cli``."""

from reservoir_cli.cli.main import main

main()
