"""Conversations as lists of messages: turns, tool calls and their results, trimming."""
