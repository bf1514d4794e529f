"""Name the folder and the files of a table's log, and its deletion vectors, as Delta's protocol does. Pure.

No other module spells them. The names of deletion vectors ("Deletion Vector Descriptor Schema" in the protocol) are
read here and not in the JVM, because that is asked for every file of a table.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

LOG_FOLDER = "_delta_log"
SIDECAR_FOLDER = "_sidecars"
LAST_CHECKPOINT = "_last_checkpoint"

COMMIT_NAME = re.compile(r"^(\d{20})\.json$")
CLASSIC_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint\.parquet$")
CHECKPOINT_PART = re.compile(r"^(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet$")
UUID_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint\.[0-9a-fA-F-]{36}\.(json|parquet)$")

DEFAULT_CHECKPOINT_INTERVAL = 10
"""Delta's default of ``delta.checkpointInterval``."""


def checkpoint_interval(properties: Mapping[str, str]) -> int:
    """Return after how many commits a checkpoint is due; 0 where the property cannot be read: then none is written."""
    text = str(properties.get("delta.checkpointInterval", DEFAULT_CHECKPOINT_INTERVAL))
    return int(text) if text.isdigit() else 0


def is_of_log(name: str) -> bool:
    """Whether a file's name is that of a commit, or of a checkpoint or a part of one."""
    return any(form.match(name) for form in (COMMIT_NAME, CLASSIC_CHECKPOINT, CHECKPOINT_PART, UUID_CHECKPOINT))


def commit_name(version: int) -> str:
    """The name of a version's commit file."""
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    """The name of a version's checkpoint that is one file."""
    return f"{version:020d}.checkpoint.parquet"


def checksum_name(version: int) -> str:
    """The name of a version's checksum file."""
    return f"{version:020d}.crc"


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_RFC_1924 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_AS_RFC_1924 = str.maketrans(_Z85, _RFC_1924)
"""The two alphabets have the same values in another order, and Python has the second one."""
_AS_Z85 = str.maketrans(_RFC_1924, _Z85)

_UUID_DIGITS = 20


def z85_decode(text: str) -> bytes:
    """Decode ZeroMQ's base 85, five characters to four bytes: UUIDs, and deletion vectors inside a log.

    Raises:
        ValueError: A character that it does not have, a length that is no multiple of five, or five characters that
            stand for more than four bytes hold.
    """
    if len(text) % 5 or not set(_Z85) >= set(text):
        raise ValueError(f"{text!r} is not base 85")
    return base64.b85decode(text.translate(_AS_RFC_1924))


def z85_encode(data: bytes) -> str:
    """Encode bytes in ZeroMQ's base 85, the reverse of ``z85_decode``; their number is a multiple of four."""
    if len(data) % 4:
        raise ValueError(f"{len(data)} bytes cannot be written in base 85: not a multiple of four")
    return base64.b85encode(data).decode("ascii").translate(_AS_Z85)


def vector_path(text: str) -> str | None:
    """Return the path below the table's root of a vector of kind ``u``; None for a text of another form.

    The last twenty characters are a UUID, what stands before them is a folder.
    """
    folder, digits = text[:-_UUID_DIGITS], text[-_UUID_DIGITS:]
    if len(digits) != _UUID_DIGITS or not (folder.isalnum() or not folder) or not folder.isascii():
        return None
    try:
        data = z85_decode(digits).hex()
    except ValueError:
        return None
    uuid = "-".join((data[:8], data[8:12], data[12:16], data[16:20], data[20:]))
    return f"{folder}/deletion_vector_{uuid}.bin" if folder else f"deletion_vector_{uuid}.bin"


def vector_of_id(unique_id: str) -> tuple[str, str] | None:
    """Return storage type and encoded path of a deletion vector by its unique id; None if the vector is inline."""
    kind, encoded_place = unique_id[:1], unique_id[1:]
    if kind == "i":
        return None
    # The offset is digits after the last "@"; the encoded path of kind "u" may hold an "@" of its own.
    path, _, offset = encoded_place.rpartition("@")
    least = _UUID_DIGITS if kind == "u" else 1
    return kind, path if offset.isdigit() and len(path) >= least else encoded_place
