"""Policies in Git that keep Delta Lake tables healthy: planned, applied and proven."""

__version__ = "0.1.0"
