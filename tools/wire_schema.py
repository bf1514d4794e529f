"""Writes the JSON Schemas of our documents from the models: ``python -m tools.wire_schema`` from the repository root.

A test holds the committed files and the models together, so a change of a document is seen in review.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import sys
import types
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from maintainer.model.codec import AS_TEXT, key_of
from maintainer.model.plan.plan import Plan
from maintainer.model.run.commit_verdict import CheckResult, VerifyRun
from maintainer.model.run.outcome import RunOutcome, TableStatus

SCHEMAS = Path(__file__).parent.parent / "schemas"

_SCALARS = {str: {"type": "string"}, bool: {"type": "boolean"}, int: {"type": "integer"}, float: {"type": "number"}}
_COUNT = {"type": "integer", "minimum": 0}


class _Writer:
    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}

    def of(self, hint: Any) -> dict[str, Any]:
        if hint in _SCALARS:
            return dict(_SCALARS[hint])
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            self.definitions[hint.__name__] = {
                "description": _summary(hint),
                "type": "string",
                "enum": [member.value for member in hint],
            }
            return {"$ref": f"#/definitions/{hint.__name__}"}
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            return self._dataclass(hint)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin in (Union, types.UnionType):
            choices = [{"type": "null"} if one is type(None) else self.of(one) for one in arguments]
            return {"anyOf": choices}
        assert origin is tuple, hint
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return {"type": "array", "items": self.of(arguments[0])}
        return {
            "type": "array",
            "items": [self.of(one) for one in arguments],
            "minItems": len(arguments),
            "maxItems": len(arguments),
        }

    def _dataclass(self, cls: type) -> dict[str, Any]:
        if cls.__name__ not in self.definitions:
            self.definitions[cls.__name__] = {}
            hints = get_type_hints(cls, vars(sys.modules[cls.__module__]))
            properties = {key_of(cls, field.name): self._field(cls, field, hints) for field in dataclasses.fields(cls)}
            self.definitions[cls.__name__] = {
                "description": _summary(cls),
                "type": "object",
                "additionalProperties": False,
                "required": sorted(properties),
                "properties": properties,
            }
        return {"$ref": f"#/definitions/{cls.__name__}"}

    def _field(self, cls: type, field: dataclasses.Field[Any], hints: dict[str, Any]) -> dict[str, Any]:
        if field.name in AS_TEXT:
            return {"type": "array", "items": {"type": "string", "pattern": "^-?[0-9]+$"}}
        if field.name == "kind" and not field.init:
            return {"const": field.default}
        return self.of(hints[field.name])


def _summary(cls: type) -> str:
    return (cls.__doc__ or "").strip().splitlines()[0]


def _document(writer: _Writer, root: str, title: str, description: str, added: dict[str, Any]) -> dict[str, Any]:
    definition = writer.definitions.pop(root)
    properties = {"format_version": {"const": 1}, **definition["properties"], **added}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
        "description": description,
        "type": "object",
        "additionalProperties": False,
        "required": sorted(properties),
        "properties": properties,
        "definitions": writer.definitions,
    }


def _counted(writer: _Writer, name: str, key: str, schema: dict[str, Any]) -> None:
    definition = writer.definitions[name]
    definition["properties"][key] = schema
    definition["required"] = sorted([*definition["required"], key])


def plan_schema() -> dict[str, Any]:
    """The schema of ``plan.json``."""
    writer = _Writer()
    writer.of(Plan)
    states = ["problem", "blocked", "changes", "waiting", "up_to_date"]
    _counted(writer, "TablePlan", "state", {"enum": states, "description": "Counted when written, never read back."})
    rewrite = ("num_batches", "num_bins", "num_files_removed", "num_files_added", "size_bytes")
    for name, keys in {
        "CompactStep": rewrite,
        "ZOrderStep": rewrite,
        "VacuumStep": ("num_files_deleted", "size_bytes"),
        "SetPropertiesStep": ("num_properties",),
    }.items():
        totals = {
            "description": "Counted when written, never read back.",
            "type": "object",
            "additionalProperties": False,
            "required": sorted(keys),
            "properties": dict.fromkeys(keys, _COUNT),
        }
        _counted(writer, name, "totals", totals)
    digest = {
        "type": "string",
        "pattern": "^sha256:[0-9a-f]{64}$",
        "description": "Over the canonical JSON of everything else; an edited plan is refused.",
    }
    about = "What `maintainer plan --out` writes and `maintainer apply` carries out. Sizes in bytes, times in ms UTC."
    return _document(writer, "Plan", "maintainer plan", about, {"digest": digest})


def results_schema() -> dict[str, Any]:
    """The schema of ``results.json``."""
    writer = _Writer()
    writer.of(RunOutcome)
    statuses = [status.value for status in TableStatus]
    counts = {
        "description": "Tables by how they ended; they add up to all selected tables, without our own ledger.",
        "type": "object",
        "additionalProperties": False,
        "required": sorted(statuses),
        "properties": dict.fromkeys(statuses, _COUNT),
    }
    about = "How a run ended, table by table and step by step; rewritten after every step. Times in ms UTC."
    return _document(writer, "RunOutcome", "maintainer results", about, {"counts": counts})


def verification_schema() -> dict[str, Any]:
    """The schema of ``verification.json``."""
    writer = _Writer()
    writer.of(VerifyRun)
    results = [result.value for result in CheckResult]
    worst = {"enum": results, "description": "The gravest of all; counted when written, never read back."}
    for name in ("CommitVerification", "TableVerification"):
        _counted(writer, name, "result", worst)
    counts = {
        "description": "Tables by their result; they add up to all selected tables.",
        "type": "object",
        "additionalProperties": False,
        "required": sorted(results),
        "properties": dict.fromkeys(results, _COUNT),
    }
    about = "What `maintainer verify` found, table by table and check by check. Times in ms UTC."
    return _document(writer, "VerifyRun", "maintainer verify", about, {"counts": counts})


DOCUMENTS = {
    "plan.schema.json": plan_schema,
    "results.schema.json": results_schema,
    "verification.schema.json": verification_schema,
}


def text_of(schema: dict[str, Any]) -> str:
    """The schema as it is committed."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for file_name, make in DOCUMENTS.items():
        (SCHEMAS / file_name).write_text(text_of(make()), encoding="utf-8")
