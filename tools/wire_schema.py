"""Writes the JSON Schemas of our documents from the models: ``python -m tools.wire_schema`` from the repository root.

pydantic derives them from the types by which it reads and writes; what is counted when a document is written is added.
A test holds the committed files and the models together, so a change of a document is seen in review.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, get_args

from pydantic.json_schema import GenerateJsonSchema

from maintainer.model.codec import type_adapter
from maintainer.model.plan.plan import Plan, TableState
from maintainer.model.plan.steps import RewriteStep
from maintainer.model.run.commit_verdict import VERDICTS, VerifyRun
from maintainer.model.run.outcome import RunOutcome, TableStatus

SCHEMAS = Path(__file__).parent.parent / "schemas"

_COUNT = {"type": "integer", "minimum": 0}
_NEVER_READ = "Counted when written, never read back."


class _FieldsAsWritten(GenerateJsonSchema):
    """Every field is required, because each is written; none has a title, which would only repeat its name."""

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        derived = super().dataclass_schema(schema)
        return {**derived, "additionalProperties": False, "description": inspect.cleandoc(schema["cls"].__doc__)}

    def field_is_required(self, *_: Any, **__: Any) -> bool:
        return True

    def field_title_should_be_set(self, _: Any) -> bool:
        return False


def _document(model: type, title: str, description: str, added: dict[str, Any]) -> dict[str, Any]:
    derived = type_adapter(model).json_schema(mode="serialization", schema_generator=_FieldsAsWritten)
    definitions = derived["$defs"]
    root = definitions.pop(model.__name__)
    properties = {"format_version": {"const": 1}, **root["properties"], **added}
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": title,
        "description": description,
        **_object(properties),
        "$defs": definitions,
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": sorted(properties),
        "properties": properties,
    }


def _counts(names: tuple[str, ...], description: str) -> dict[str, Any]:
    return {"description": description, **_object(dict.fromkeys(names, _COUNT))}


def _add(schema: dict[str, Any], name: str, key: str, counted: dict[str, Any]) -> None:
    definition = schema["$defs"][name]
    definition["properties"][key] = counted
    definition["required"] = sorted([*definition["required"], key])


def plan_schema() -> dict[str, Any]:
    """The schema of ``plan.json``."""
    digest = {
        "type": "string",
        "pattern": "^sha256:[0-9a-f]{64}$",
        "description": "Over the canonical JSON of everything else; an edited plan is refused.",
    }
    about = "What `maintainer plan --out` writes and `maintainer apply` carries out. Sizes in bytes, times in ms UTC."
    schema = _document(Plan, "maintainer plan", about, {"digest": digest})
    schema["$defs"]["DataFile"]["required"] = ["modification_time_ms", "path", "size_bytes"]  # see ``to_document``
    states = [state.value for state in TableState]
    _add(schema, "TablePlan", "state", {"enum": states, "description": _NEVER_READ})
    rewrite = ("num_batches", "num_bins", "num_files_removed", "num_files_added", "size_bytes")
    for name, keys in {
        **{step.__name__: rewrite for step in get_args(RewriteStep)},
        "VacuumStep": ("num_files_deleted", "size_bytes"),
        "SetPropertiesStep": ("num_properties",),
    }.items():
        _add(schema, name, "totals", _counts(keys, _NEVER_READ))
    return schema


def results_schema() -> dict[str, Any]:
    """The schema of ``results.json``."""
    statuses = tuple(status.value for status in TableStatus)
    counts = _counts(statuses, "Tables by how they ended; they add up to all selected tables, without our own ledger.")
    about = "How a run ended, table by table and step by step; rewritten after every step. Times in ms UTC."
    return _document(RunOutcome, "maintainer results", about, {"counts": counts})


def verification_schema() -> dict[str, Any]:
    """The schema of ``verification.json``."""
    results = tuple(result.value for result in VERDICTS)
    counts = _counts(results, "Tables by their result; they add up to all selected tables but our own ledger.")
    about = "What `maintainer verify` found, table by table and check by check. Times in ms UTC."
    schema = _document(VerifyRun, "maintainer verify", about, {"counts": counts})
    worst = {"enum": list(results), "description": f"The gravest of all. {_NEVER_READ}"}
    for name in ("CommitVerification", "TableVerification"):
        _add(schema, name, "result", worst)
    return schema


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
