"""Checks after a commit: figures that must be equal, and Great Expectations suites.

``execution`` and ``app`` import this package. A new check after a commit goes to ``commit_checks_after``.
"""
