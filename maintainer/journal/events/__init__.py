"""``events.jsonl``: the events of a run, and the intents among them that have no result yet."""
