"""Names of tables and selectors: what ``--select`` chooses, and which tables a rule matches."""
