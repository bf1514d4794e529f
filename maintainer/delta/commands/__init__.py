"""The second engine: Delta's public commands and Spark's public API, also over Spark Connect.

It proves a commit afterwards, by comparing version N with version N-1.
"""
