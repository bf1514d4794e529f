"""Checks after a commit: figures that must be equal, and Great Expectations suites.

``execution`` and ``app`` import this package. A new check after a commit goes to ``commit_checks_after``, what
is done with a policy's own expectations to ``expectation_checks``.
"""
