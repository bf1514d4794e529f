"""The second engine: Delta's public commands and Spark's public DataFrame API, and nothing private.

It runs where the transaction layer cannot be reached: over Spark Connect, and on other builds of Delta. A command
decides for itself which files it takes and commits before anyone can look; so what it did is proven afterwards,
version N against N-1, and its difference to the plan is reported.
"""
