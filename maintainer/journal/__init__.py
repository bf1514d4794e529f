"""Records of runs: run folders, events, table records, leases and the ledger's rows.

``journal`` writes one run's record, ``memory`` folds all runs into what is known of each table. ``app``,
``execution`` and ``delta`` (for the ledger table) may import it. A new event starts in `model.run.run_events`.
"""
