"""Auto compaction right after a write, called by a writer's own process.

``auto_compact_hook`` is the public function; ``auto_compact_run`` is one attempt in a session of its own.
"""
