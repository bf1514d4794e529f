"""Plans deletions: which files are past retention, and every reason to keep a file that is.

``vacuum_plan`` decides which files, ``deletion_limits`` how long they are kept and how many go at most.
"""
