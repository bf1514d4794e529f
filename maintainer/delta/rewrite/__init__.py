"""Rewrites a batch: reads its files, writes bins, proves them and commits.

``bin_writer`` writes, ``rewrite_proof`` proves before the commit, ``rewrite_commit`` commits through Delta's
transaction.
"""
