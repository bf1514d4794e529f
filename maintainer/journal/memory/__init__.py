"""What past runs say about each table: last optimize, unproven versions, quarantine, failures in a row."""
