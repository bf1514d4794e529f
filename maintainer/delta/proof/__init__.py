"""What a proof compares: actions, fingerprints of rows, statistics. Used before a commit and by ``verify`` after it."""
