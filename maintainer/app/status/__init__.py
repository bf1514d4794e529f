"""The state of each table right now (its plan, its past runs and who works on it), as rows and metrics."""
