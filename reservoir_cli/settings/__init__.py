"""What can be set, where it is read from, and where files lie."""
