"""Name the folder and the files of a table's log, as Delta's protocol does. No other module spells them."""

from __future__ import annotations

import re

LOG_FOLDER = "_delta_log"
SIDECAR_FOLDER = "_sidecars"
LAST_CHECKPOINT = "_last_checkpoint"

COMMIT_NAME = re.compile(r"^(\d{20})\.json$")
CLASSIC_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint\.parquet$")
CHECKPOINT_PART = re.compile(r"^(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet$")
UUID_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint\.[0-9a-fA-F-]{36}\.(json|parquet)$")


def is_of_log(name: str) -> bool:
    """Whether a file's name is that of a commit, or of a checkpoint or a part of one."""
    return any(form.match(name) for form in (COMMIT_NAME, CLASSIC_CHECKPOINT, CHECKPOINT_PART, UUID_CHECKPOINT))


def is_of_checkpoint(name: str) -> bool:
    """Whether a file's name is that of a checkpoint, of a part of one, or of what names the last one."""
    return name == LAST_CHECKPOINT or (is_of_log(name) and COMMIT_NAME.match(name) is None)


def commit_name(version: int) -> str:
    """The name of a version's commit file."""
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """The name of a version's checkpoint that is one file."""
    return f"{version:020d}.checkpoint.parquet"


def checksum_name(version: int) -> str:
    """The name of a version's checksum file."""
    return f"{version:020d}.crc"
