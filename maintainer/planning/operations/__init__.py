"""Plans each kind of rewrite: compaction, full Z-order, clustering, partition rewrite, purge.

Each module returns a step or the reasons why there is none. A new kind of rewrite is a module here and a line
in ``rewrite_choice``.
"""
