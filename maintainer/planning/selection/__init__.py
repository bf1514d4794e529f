"""Chooses the files a rewrite takes, packs them into bins, and refuses unsupported tables.

A new rule about which files are taken goes to ``file_selection``.
"""
