"""``python -m reservoir_cli``."""

from reservoir_cli.cli.app import main

main()
