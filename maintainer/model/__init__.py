"""Frozen values that every layer shares: tables, plans, runs. No input or output happens here.

``table`` describes a Delta table, ``plan`` what will be done to it, ``run`` what happened. ``codec`` turns
frozen values into JSON and back. Everything may import this package; it imports only ``errors`` and ``units``.
A new field of a plan, a result or a table's facts starts here.
"""
