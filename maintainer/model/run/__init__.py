"""What came of a plan: outcomes, proofs, receipts, progress events, exit codes, and their JSON documents.

``execution`` produces these values, ``journal`` stores them and ``report`` prints them. A new figure in
results, ledger or reports starts here.
"""
