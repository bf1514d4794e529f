"""Object stores through obstore: a client of one bucket, its settings from Spark's keys, and why a request failed.

The state and the tables use it. What only one of them needs lives there (``journal.store``, ``delta.storage``).
"""
