"""Carries out a plan: many tables at once, one table's steps in order, and how a run is stopped.

``fleet`` runs all tables, ``table`` one table, ``run_context`` holds what all tables of a run share. It knows engines
only through ``maintainer.engine``. A change of what happens around a commit goes to ``table``.
"""
