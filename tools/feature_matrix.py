"""The docs' table of operations by table feature, from the code: ``python -m tools.feature_matrix`` writes it."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import get_args

from maintainer.errors import TableError
from maintainer.model.plan.steps import Step
from maintainer.model.table.table_facts import Protocol
from maintainer.model.table.table_features import REWRITABLE_FEATURES, WHY_NOT
from maintainer.planning.selection.supported_features import check_supported
from tests.support.tables.builders import make_facts

PAGE = Path(__file__).resolve().parents[1] / "docs" / "features.md"
BEGIN, END = "<!-- features -->\n", "<!-- /features -->\n"
PREVIEW = "-preview"
CLUSTERING = "clustering"


def operations() -> list[str]:
    """The kinds of all steps."""
    kinds = []
    for step in get_args(Step):
        (kind,) = [field.default for field in fields(step) if field.name == "kind" and field.default is not MISSING]
        kinds.append(kind)
    return sorted(kinds, key=lambda kind: (kind == "set_properties", kind == "vacuum"))


def refusal(feature: str) -> TableError | None:
    """How planning refuses a table with the feature; None where it plans."""
    protocol = Protocol(3, 7, (feature,), (feature,))
    try:
        check_supported(make_facts(protocol=protocol))
    except TableError as error:
        return error
    return None


def cell(feature: str, kind: str) -> str:
    """Whether the kind of step works on a table with a supported feature.

    A table with clustering columns is clustered and purged, and is not laid out in another way; no other is clustered.
    """
    if feature == CLUSTERING:
        return "no" if kind in ("compact", "zorder", "rewrite") else "yes"
    return f"with `{CLUSTERING}`" if kind == "cluster" else "yes"


def lines() -> list[str]:
    """The table in Markdown, a line each."""
    kinds = operations()
    table_lines = [f"| table feature | {' | '.join(kinds)} | |", f"|---|{'---|' * len(kinds)}---|"]
    names = sorted(feature for feature in REWRITABLE_FEATURES if not feature.endswith(PREVIEW))
    for name in [*names, *WHY_NOT, "any other"]:
        error = refusal(name)
        preview = f", `{name}{PREVIEW}`" if f"{name}{PREVIEW}" in REWRITABLE_FEATURES else ""
        cells = " | ".join("no" if error is not None else cell(name, kind) for kind in kinds)
        why = "" if error is None else f"{error.code}: {_why(name)}"
        shown = name if name == "any other" else f"`{name}`"
        table_lines.append(f"| {shown}{preview} | {cells} | {why} |".replace("|  |", "| |"))
    return table_lines


def _why(name: str) -> str:
    return WHY_NOT.get(name, "nothing here is tested with it")


def main() -> None:
    """Put the table into its page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(before + BEGIN + "\n".join(lines()) + "\n" + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
