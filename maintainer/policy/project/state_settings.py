"""The key ``state`` of maintainer.yml: the one folder in which everything that lasts between runs lies."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from maintainer.model.table.store_kinds import STATE_PLACES, STORE_KINDS
from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.table_names import is_uri
from maintainer.policy.yaml.yaml_document import Document
from maintainer.policy.yaml.yaml_document import Path as DataPath

DEFAULT_STATE = ".maintainer"
LEDGER_NAME, RUNS_NAME = "ledger", "runs"
"""The ledger's folder in the state, and that of all run folders."""


def state_problems(document: Document, data: Mapping[str, object]) -> Iterator[Diagnostic]:
    """Refuse a ledger in the place of the whole state, and storage that a state cannot lie on.

    Args:
        document: maintainer.yml.
        data: Its content, with environment variables put in.
    """
    environments = data.get("environments")
    named = environments.items() if isinstance(environments, dict) else ()
    levels: list[tuple[DataPath, object]] = [((), data), *((("environments", name), level) for name, level in named)]
    for path, level in levels:
        written = level.get("state") if isinstance(level, dict) else None
        if isinstance(written, str) and (problem := state_problem(written)):
            yield document.error_at((*path, "state"), *problem)


def state_problem(written: str) -> tuple[str, str, str] | None:
    """Return code, message and help for a place that cannot be a state; None for one that can."""
    folder, _, last = written.rstrip("/").rpartition("/")
    if last == LEDGER_NAME:
        message = "`state` is the folder for everything that a run leaves, not only for the ledger"
        return "P380", message, f"write `state: {folder or DEFAULT_STATE}`; the ledger is in it, as `{LEDGER_NAME}`"
    scheme, _, rest = written.partition("://")
    if is_uri(written) and (scheme not in STATE_PLACES or not rest.partition("/")[0]):
        message = f"the state cannot be on `{written}`"
        return "P381", message, f"name a folder of this machine, or {', '.join(dict.fromkeys(STATE_PLACES.values()))}"
    return None


def ledger_in(state: str) -> str:
    """Return where the ledger of a state lies: a path or URI that Spark can open."""
    scheme, separator, rest = state.partition("://")
    kind = STORE_KINDS.get(scheme) if separator else None
    place = state if kind is None or kind.hadoop_scheme is None else f"{kind.hadoop_scheme}://{rest}"
    return posixpath.join(place, LEDGER_NAME)
