"""Partition predicates (``optimize.where``): a small grammar of our own, read, printed and evaluated."""
