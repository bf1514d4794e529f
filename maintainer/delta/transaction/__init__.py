"""Parts of a commit: requirements, the outcome of a commit, AddFiles and properties."""
