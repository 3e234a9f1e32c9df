"""Checks, repair and backup."""
