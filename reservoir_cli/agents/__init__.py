"""Integrations with agents and other programs that talk to models."""
