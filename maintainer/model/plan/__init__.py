"""A plan as data: tables, steps, bins, batches and the reasons for them, and its JSON document.

``steps`` holds the closed union of steps: a new kind of step starts there, and mypy then lists every ``match``
to extend. ``reasons`` holds the closed set of reasons. Everything above ``model`` may import this package.
"""
