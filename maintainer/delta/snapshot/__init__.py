"""A table's state at its newest version: through Delta Kernel, Spark or plain JSON, as facts for planning."""
