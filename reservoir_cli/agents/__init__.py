"""Doors for agents: what their clients call to read and write a store."""
