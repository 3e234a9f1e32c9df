"""The web page: ``handlers`` has the addresses, and ``access`` checks sessions."""
