"""Load a project: its files, the effective policy of each table, and what changed since a git commit.

May import everything in ``policy``. A new key of maintainer.yml goes into `project_settings`.
"""
