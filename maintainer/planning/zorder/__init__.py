"""Plans incremental Z-order: which files are sorted in this turn, and why the others wait.

``incremental_zorder`` is the entry, ``turn_choice`` picks the strategy; two of them are in ``turn_strategies``.
"""
