"""A table's log: its actions, commits, history and names in its schema. Reads only."""
