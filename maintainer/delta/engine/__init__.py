"""The transaction engine: its workers, its reader and the ledger table, behind ``maintainer.engine.protocols``.

Only ``app`` and ``delta.doctor`` import this folder.
"""
