"""``maintainer ui``: the command, and the server beside it, which knows nothing of projects, tables or runs.

The server is handed a `PageAt`, one function from a path to a page: `app/lookback/served_pages.py` has a project's.
"""
