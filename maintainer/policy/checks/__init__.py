"""What values mean together: within one file, across files, and after merging."""
