"""Chooses the files a rewrite takes, packs them into bins, and refuses unsupported tables.

``decision`` collects what is left alone with its reason. A new rule about which files are taken goes to
``file_selection``.
"""
