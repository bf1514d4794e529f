"""Carries out the steps of one table, each with INTENT, write, proof, commit and RESULT.

``table_run`` holds the order, ``commit_attempt`` wraps each call that commits or deletes.
"""
