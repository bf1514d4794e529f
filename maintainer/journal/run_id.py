"""Run ids: ``20261121T220003Z-7f3a``, the UTC second of the start and four random hex digits.

They sort by time as text, are safe as a folder name, and two runs that start in one second differ.
"""

from __future__ import annotations

import re
import secrets
from datetime import datetime, timezone

_PATTERN = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}")


def new_run_id(now_ms: int) -> str:
    """Make a run id for a run that starts at ``now_ms`` (milliseconds since 1970 UTC)."""
    start = datetime.fromtimestamp(now_ms // 1000, tz=timezone.utc)
    return f"{start:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def is_run_id(text: str) -> bool:
    """Whether the text has the form of a run id; anything else in the runs folder is not ours."""
    return _PATTERN.fullmatch(text) is not None
