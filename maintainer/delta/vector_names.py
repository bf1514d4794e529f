"""The names of deletion vector files, decoded from what the log says of them."""

from __future__ import annotations

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
"""Z85, as the Delta protocol uses it."""

_VALUES = {digit: number for number, digit in enumerate(_DIGITS)}
_UUID_DIGITS = 20


def vector_path(text: str) -> str | None:
    """The path below the table's root of a vector of kind ``u``; None for a text that is not of the protocol's form.

    The last twenty characters are a UUID in Z85, what stands before them is a folder ("Deletion Vector Descriptor
    Schema" in the protocol). Decoded here and not in the JVM, because it is asked for every file of a table.
    """
    folder, digits = text[:-_UUID_DIGITS], text[-_UUID_DIGITS:]
    if len(digits) != _UUID_DIGITS or not (folder.isalnum() or not folder) or not folder.isascii():
        return None
    try:
        data = b"".join(_four_bytes(digits[start : start + 5]) for start in range(0, _UUID_DIGITS, 5)).hex()
    except (KeyError, OverflowError):
        return None
    uuid = "-".join((data[:8], data[8:12], data[12:16], data[16:20], data[20:]))
    return f"{folder}/deletion_vector_{uuid}.bin" if folder else f"deletion_vector_{uuid}.bin"


def _four_bytes(digits: str) -> bytes:
    number = 0
    for digit in digits:
        number = number * 85 + _VALUES[digit]
    return number.to_bytes(4, "big")
