"""Frozen values that every layer shares: tables, plans, outcomes; no I/O."""
