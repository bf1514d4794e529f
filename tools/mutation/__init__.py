"""Mutation testing: small wrong changes in what decides about rows and files, which some test must notice.

``make mutation`` runs them. ``mutants`` lists the changes, ``transplant`` puts one into a running process, ``trials``
runs the tests of its lines, ``survivors`` knows why some may live, ``page`` writes ``docs/mutation.md``.

mutmut was tried: it changes functions only, and none with a decorator (properties, context managers), and neither the
limits that stand in modules nor defaults. Those are much of what is changed here.
"""
