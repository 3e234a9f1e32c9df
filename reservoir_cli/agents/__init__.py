"""Connections to the programs in which people talk to models."""
