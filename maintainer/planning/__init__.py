"""Pure decisions: (policy, facts, now) -> Plan. No clock, no environment, no Spark."""
