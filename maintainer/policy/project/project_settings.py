"""Read what maintainer.yml says about the project itself, after environment variables were put in."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from maintainer.errors import ProjectError
from maintainer.policy.diagnostics.diagnostics import Diagnostic, Severity, nearest
from maintainer.policy.resolve.budget_settings import Budgets, read_budgets
from maintainer.policy.select.table_names import absolute_path
from maintainer.policy.yaml.yaml_document import Document
from maintainer.policy.yaml.yaml_document import Path as DataPath
from maintainer.units import parse_duration, parse_size

_VARIABLE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")
_OPENING = re.compile(r"\$\{env:[^}]*\}?")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The project's own settings, complete; None means unbounded. Paths are absolute or URIs.

    ``batches`` are the sizes of the first batches of a run: a number of tables, or a share such as ``"20%"``.
    ``catalog`` is where table names are looked up, None for the session's current one. ``engine`` is ``transaction``
    or ``command``, None where nobody says. ``single_writer``: on S3 nobody else writes to the tables during a run.
    """

    state: str
    run_dir: str
    timezone: str = "UTC"
    max_plan_age_seconds: int = 86_400
    max_failures: int | None = None
    max_bytes: int | None = None
    max_files: int | None = None
    timeout_seconds: int | None = None
    batches: tuple[int | str, ...] = ()
    environments: tuple[str, ...] = ()
    environment: str | None = None
    catalog: str | None = None
    engine: str | None = None
    single_writer: bool = False
    budgets: Budgets = field(default_factory=Budgets)


def project_settings(document: Document | None, root: Path, env: str | None) -> ProjectSettings:
    """Read the settings of a checked maintainer.yml, or the defaults where there is none.

    Raises:
        ProjectError: E627, the environment that was asked for is not in the file.
    """
    data = document.data if document else {}
    limits = data.get("limits") or {}
    environments = data.get("environments") or {}
    if env is not None and env not in environments:
        near = nearest(env, environments)
        raise ProjectError(
            f"there is no environment `{env}`",
            code="E627",
            where=document.file if document else str(root),
            found=env,
            allowed=", ".join(sorted(environments)) or "none: maintainer.yml has no `environments:`",
            help=f"did you mean `{near}`?" if near else "write it in maintainer.yml, or leave --env out",
        )
    chosen = environments.get(env) or {} if env is not None else {}
    return ProjectSettings(
        state=absolute_path(chosen.get("state") or data.get("state") or ".maintainer/ledger", root),
        run_dir=absolute_path(chosen.get("runDir") or data.get("runDir") or ".maintainer/runs", root),
        timezone=data.get("timezone") or "UTC",
        max_plan_age_seconds=parse_duration(data.get("maxPlanAge") or "24h"),
        max_failures=limits.get("maxFailures"),
        max_bytes=parse_size(limits["maxBytes"]) if limits.get("maxBytes") else None,
        max_files=limits.get("maxFiles"),
        timeout_seconds=parse_duration(limits["timeout"]) if limits.get("timeout") else None,
        batches=tuple(data.get("batches") or ()),
        environments=tuple(sorted(environments)),
        environment=env,
        catalog=chosen.get("catalog"),
        engine=chosen.get("engine") or data.get("engine"),
        single_writer=bool(data.get("singleWriter")),
        budgets=read_budgets(data.get("budget"), root),
    )


def with_environment(document: Document, environ: Mapping[str, str]) -> tuple[Document, list[Diagnostic]]:
    """Put environment variables into the texts of maintainer.yml.

    ``${env:NAME}`` must be set; ``${env:NAME:-default}`` has a way out. Replaced after parsing, so a value can
    never become a key or a list. Keys are not touched, and every place stays what it was in the file.
    """
    findings: list[Diagnostic] = []
    data = _replaced(document.data, (), document, environ, findings)
    assert isinstance(data, dict)
    return dataclasses.replace(document, data=data), findings


def _replaced(
    value: object,
    path: DataPath,
    document: Document,
    environ: Mapping[str, str],
    findings: list[Diagnostic],
) -> object:
    if isinstance(value, dict):
        return {key: _replaced(inner, (*path, key), document, environ, findings) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, (*path, at), document, environ, findings) for at, inner in enumerate(value)]
    if not isinstance(value, str) or "${env:" not in value:
        return value

    def text_of(match: re.Match[str]) -> str:
        variable = _VARIABLE.fullmatch(match.group())
        if variable is None:
            findings.append(_problem(document, path, f"`{match.group()}` is not an environment variable"))
            return match.group()
        text = environ.get(variable[1], variable[2])
        if text is None:
            findings.append(_problem(document, path, f"the environment variable `{variable[1]}` is not set"))
            return match.group()
        return text

    return _OPENING.sub(text_of, value)


def _problem(document: Document, path: DataPath, message: str) -> Diagnostic:
    help = "set it, or give a default as in `${env:NAME:-default}`"
    return Diagnostic("P354", Severity.ERROR, message, document.file, document.span_of(path), help)
