"""What a proof compares: actions, fingerprints of rows, statistics. For a check before a commit, and for ``verify``."""
