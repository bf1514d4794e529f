"""Which tables an operation works on: selectors, shards, and what the last run says.

``run_spec`` holds everything that a user asks of an operation, ``chosen_tables`` what is meant. ``managed_search``
finds tables that only rules manage, ``recorded_tables`` says which tables of today past runs recorded.
"""
