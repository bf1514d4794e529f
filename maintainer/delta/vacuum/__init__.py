"""Deletes files that nobody needs any more, with a last look at each, or moves them to the trash.

``vacuum_deletion`` holds the order, ``file_deletion`` the loop. A new threat to guard against goes to
``vacuum_candidates``.
"""
