"""Read, print and evaluate partition predicates (``optimize.where``): a small grammar of our own.

Imports no other folder. A new form needs a node in `predicate_grammar`, its reading in `predicate_parse` and its
meaning in `partition_predicate`.
"""
