"""A table's log: its actions, commits, history, and the names in its schema. Read only."""
