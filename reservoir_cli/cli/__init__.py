"""The command line: it gathers what was typed, calls one verb, and prints."""
