"""Prove commits that are already in the log, whoever made them: their actions, rows, statistics and files."""
