"""Hold a saved plan against the table and the policy as they are now."""
