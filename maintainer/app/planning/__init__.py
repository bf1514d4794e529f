"""Makes a plan for a project: reads facts of each table, asks ``maintainer.planning`` and collects problems.

``make_plan`` is the operation, ``read_table`` reads one table, ``reader_pool`` several with time limits,
``policy_places`` finds policies of one table, ``run_statistics`` learns from past runs.
"""
