"""Run folders and ledger: what was intended, what came of it."""
