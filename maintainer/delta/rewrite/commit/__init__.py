"""Commit what was written and proven, also after another writer won.

``rewrite_commit`` tries, looks at what became of it and tries again. ``carried_deletes`` takes over into the new files
which rows others deleted meanwhile.
"""
