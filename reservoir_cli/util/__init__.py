"""Helpers that know nothing about messages or stores."""
