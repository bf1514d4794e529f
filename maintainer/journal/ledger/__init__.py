"""Rows of the ledger: made from a plan and its outcome, or rebuilt from run folders and histories.

The Delta table itself is written in ``maintainer.delta.engine``.
"""
