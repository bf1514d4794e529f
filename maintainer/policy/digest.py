"""A policy's digest: the same for the same effective values, wherever and however they were written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping


def policy_digest(values: Mapping[str, object]) -> str:
    """Return ``sha256:`` and the hash of the canonical JSON of effective values.

    Args:
        values: Dotted key to value in base units (bytes, seconds, canonical predicate text), so that
            ``1GiB`` and ``1024MiB`` agree. Neither origins nor the table's name belong in it: a digest must
            not depend on the machine or on how files are laid out.
    """
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()
