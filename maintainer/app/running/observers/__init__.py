"""What listens to a run from outside: notifications, metrics, traces, lineage. None of them can harm a run."""
