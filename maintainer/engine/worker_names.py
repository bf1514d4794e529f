"""Names for workers of the engine. A name is a Spark job group as well, and two runs may share a SparkContext."""

from __future__ import annotations

import uuid


def worker_name(work: str) -> str:
    """Name a worker for this work and for nothing else: cancelling its job group must not reach another run's."""
    return f"{work}-{uuid.uuid4().hex[:8]}"
