"""Compare names of tables, match rules with tables, and choose tables by ``--select``.

Imports ``predicate`` and ``diagnostics`` only. A new selector goes into `selectors`, a new spelling of a table into
`table_names`.
"""
