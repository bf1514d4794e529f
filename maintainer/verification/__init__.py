"""Proofs: what must be equal, and who asserts it."""
