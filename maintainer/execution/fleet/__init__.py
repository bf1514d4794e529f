"""Runs all tables of a plan: worker threads, rollout in batches, results, and the append to the ledger.

A change of parallelism, time limits or the end of a run goes here.
"""
