"""``maintainer validate``: which files are checked, and in which form findings are printed.

The checks themselves are in ``policy``, their rendering in ``report.validate``.
"""
