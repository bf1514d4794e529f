"""Parts of a commit: what must be true of the table, what became of it, live files, properties, small log files."""
