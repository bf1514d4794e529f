"""Plans deletions: which files are past retention, and every reason to keep a file that is.

``retention`` decides how long, ``vacuum_plan`` which files, ``deletion_limits`` how many at most.
"""
