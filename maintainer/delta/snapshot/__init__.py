"""A table's state at its newest version: as facts for planning: replayed here, or read by Spark."""
