"""Rewrite a batch: read its files, write bins, prove them and commit.

``bin_writer`` writes, ``rewrite_proof`` proves before the commit, ``rewrite_commit`` commits through Delta's
transaction.
"""
