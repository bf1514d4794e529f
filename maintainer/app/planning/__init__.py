"""Makes a plan for a project: reads facts of each table, asks ``maintainer.planning`` and collects problems.

``make_plan`` is the operation, ``reader_pool`` reads tables in parallel with time limits, ``run_statistics``
learns from past runs.
"""
