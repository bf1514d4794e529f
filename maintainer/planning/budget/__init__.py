"""Ranks tables by benefit and fits rewrites into the budget of a run; estimates how likely a conflict is."""
