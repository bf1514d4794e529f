"""The second engine: Delta's public commands and Spark's public API, also over Spark Connect.

It proves after the commit, by comparing version N with N-1.
"""
