"""Which tables an operation works on: selectors, shards, and what the last run says.

``run_spec`` holds everything that a user asks of an operation.
"""
