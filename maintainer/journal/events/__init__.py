"""``events.jsonl``: its lines, and what runs that are over left open or get added."""
