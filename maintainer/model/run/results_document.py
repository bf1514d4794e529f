"""Outcomes as documents: ``results.json``, rewritten after every step and read by later commands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from maintainer.model.codec import DecodeError, canonical_json, decode, encode
from maintainer.model.run.outcome import RunOutcome, TableOutcome, TableStatus

FORMAT_VERSION = 1


def run_to_document(run: RunOutcome) -> dict[str, Any]:
    """Turn a run's outcome into the JSON document, with the tables counted by status."""
    return {"format_version": FORMAT_VERSION, **encode(run), "counts": _counts(run)}


def _counts(run: RunOutcome) -> dict[str, int]:
    return {status.value: run.count(status) for status in TableStatus}


def run_to_json(run: RunOutcome, *, indent: int | None = None) -> str:
    """Write a run's outcome as JSON text, on one line or indented."""
    document = run_to_document(run)
    if indent is None:
        return canonical_json(document)
    return json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=indent)


def run_from_fragments(run: RunOutcome, tables: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what `run_to_json` writes, as a file has it, from the tables' own texts that `table_to_json` makes."""
    head = {name: value for name, value in run_to_document(replace(run, tables=())).items() if name != "tables"}
    head["counts"] = _counts(run)
    # The name of the tables is the last in order, so they are added to the rest.
    yield f'{canonical_json(head)[:-1]},"tables":['.encode("utf-8", "surrogatepass")
    for number, table in enumerate(tables):
        yield b"," * bool(number) + table
    yield b"]}\n"


def table_to_json(table: TableOutcome) -> bytes:
    """Return one table's outcome as it is in the file of a run."""
    return canonical_json(table_to_document(table)).encode("utf-8", "surrogatepass")


def run_from_document(document: object) -> RunOutcome:
    """Read a run's outcome back.

    Raises:
        DecodeError: It is not a document of this format.
    """
    if not isinstance(document, dict) or document.get("format_version") != FORMAT_VERSION:
        raise DecodeError("format_version", f"expected {FORMAT_VERSION}")
    fields = {key: value for key, value in document.items() if key not in ("format_version", "counts")}
    return decode(RunOutcome, fields)


def run_from_json(text: str) -> RunOutcome:
    """Read a run's outcome from JSON text.

    Raises:
        DecodeError: The text is not JSON, or not a document of this format.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError("", f"not JSON: {str(error)[:200]}") from error
    return run_from_document(document)


def table_to_document(table: TableOutcome) -> dict[str, Any]:
    """Turn one table's outcome into JSON values."""
    document: dict[str, Any] = encode(table)
    return document
