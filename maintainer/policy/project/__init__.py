"""A project as a whole: its files, the effective policy of each table, and changes since a git commit."""
