"""Read what maintainer.yml says about the project itself, after environment variables were put in.

Budgets say what a run may spend on rewrites: as a whole, for each owner and each table. The ledger has a policy of
its own, for every run appends to it. That holds when the ledger exists and no file names it. A file that names it
replaces this policy as a whole, with defaults, rules and profiles as for any table. Without such a file none of them
applies to the ledger.
"""

from __future__ import annotations

import dataclasses
import os
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from maintainer.errors import ProjectError
from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.diagnostics import Diagnostic, nearest
from maintainer.policy.project.notify_settings import Notify, notify_problems, read_notify
from maintainer.policy.project.price_settings import Prices
from maintainer.policy.project.spark_settings import read_spark_conf, spark_problems
from maintainer.policy.project.state_settings import DEFAULT_STATE, LEDGER_NAME, ledger_in, state_problems
from maintainer.policy.project.storage_settings import storage_kinds
from maintainer.policy.project.table_search import SearchPlaces, read_places
from maintainer.policy.resolve.merge import built_in_layer
from maintainer.policy.resolve.policy_fields import duration, policy_part, setting, size
from maintainer.policy.resolve.resolve import Resolution, resolve
from maintainer.policy.resolve.resolved import BUILT_IN
from maintainer.policy.schema.schema_check import TEMPLATE
from maintainer.policy.table_names import absolute_glob, absolute_path, name_matches, plain_name, table_ref
from maintainer.policy.yaml.yaml_document import Document
from maintainer.policy.yaml.yaml_document import Path as DataPath

EVERYBODY = "*"
"""Stands for every owner that has no budget under its own name."""


class Scorer(str, Enum):
    """How rewrites are ranked: by our own absolute figure, or as OpenHouse's AutoComp does."""

    BENEFIT = "benefit"
    AUTOCOMP = "autocomp"


@dataclass(frozen=True, slots=True)
class Budget:
    """At most so much; None is no bound."""

    size_bytes: int | None = size(key="maxBytes")
    num_files: int | None = setting(key="maxFiles")
    seconds: float | None = duration(key="maxTime")

    @property
    def bounded(self) -> bool:
        """Whether anything is bounded."""
        return (self.size_bytes, self.num_files, self.seconds) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Budgets:
    """Budgets of one run.

    Args:
        run: Of the whole run.
        owners: By owner; ``*`` for each owner that is not named.
        tables: Of each single table, by a glob on its name or path; the first that matches counts.
        scorer: How rewrites are ranked.
    """

    run: Budget = setting(Budget(), key=".")
    owners: tuple[tuple[str, Budget], ...] = ()
    tables: tuple[tuple[str, Budget], ...] = ()
    scorer: Scorer = setting(Scorer.BENEFIT)

    @property
    def bounded(self) -> bool:
        """Whether anything is bounded."""
        return self.run.bounded or any(budget.bounded for _, budget in (*self.owners, *self.tables))

    def of_owner(self, owner: str | None) -> Budget:
        """The budget that all tables of an owner share; tables without an owner have none of their own."""
        named = dict(self.owners)
        return Budget() if owner is None else named.get(owner, named.get(EVERYBODY, Budget()))

    def of_table(self, table: TableRef) -> Budget:
        """What one table may spend in a run."""
        name = plain_name(table)
        return next((budget for glob, budget in self.tables if name_matches(name, (glob,))), Budget())

    def with_run(self, given: Budget) -> Budgets:
        """These budgets with the run's bounds replaced where others are given."""
        run = Budget(
            self.run.size_bytes if given.size_bytes is None else given.size_bytes,
            self.run.num_files if given.num_files is None else given.num_files,
            self.run.seconds if given.seconds is None else given.seconds,
        )
        return replace(self, run=run)


_VARIABLE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")
_OPENING = re.compile(r"\$\{env:[^}]*\}?")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The project's own settings, complete; None means unbounded. Paths are absolute or URIs.

    ``state`` is the folder of everything that lasts between runs.
    ``batches`` are the sizes of the first batches of a run: a number of tables, or a share such as ``"20%"``.
    ``engine`` is ``transaction`` or ``command``, None where nobody says.
    ``single_writer``: on S3 nobody else writes to the tables during a run.
    ``scratch_bytes`` is the room for copies of a store's files, None for half of what is free.
    ``spark_conf`` may hold secrets. ``name`` stands above reports: that of the project's folder where none is given.
    ``places`` are where tables without a file are looked for.
    ``storage`` are the kinds of object store whose connectors are needed.
    """

    state: str
    timezone: str = setting("UTC")
    max_plan_age_seconds: int = duration("24h")
    max_failures: int | None = setting(key="limits.maxFailures")
    max_bytes: int | None = size(key="limits.maxBytes")
    max_files: int | None = setting(key="limits.maxFiles")
    timeout_seconds: int | None = duration(key="limits.timeout")
    batches: tuple[int | str, ...] = ()
    environments: tuple[str, ...] = ()
    environment: str | None = None
    engine: str | None = None
    single_writer: bool = setting(False)
    scratch_bytes: int | None = size(key="limits.maxScratch")
    budgets: Budgets = setting(Budgets(), key="budget")
    notify: Notify | None = None
    spark_conf: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    storage: tuple[str, ...] = ()
    name: str = ""
    prices: Prices = field(default_factory=Prices)
    places: SearchPlaces = field(default_factory=SearchPlaces)

    @property
    def ledger(self) -> str:
        """Where the ledger is: a path or URI of a Delta table's folder, as Spark opens it."""
        return ledger_in(self.state)

    @property
    def ledger_as_written(self) -> str:
        """The same place as people know it, from ``state:``."""
        return posixpath.join(self.state, LEDGER_NAME)


def project_settings(
    document: Document | None, root: Path, env: str | None, locations: Iterable[str] = ()
) -> ProjectSettings:
    """Read the settings of a checked maintainer.yml, or the defaults where there is none.

    Args:
        document: maintainer.yml.
        root: The folder that relative paths start from.
        env: The environment that was asked for.
        locations: What the policies name: names, paths and addresses.

    Raises:
        ProjectError: E627, the environment that was asked for is not in the file.
    """
    data = document.data if document else {}
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
    data = {**data, **{key: value for key, value in chosen.items() if value is not None}}
    state, places = absolute_path(data.get("state") or DEFAULT_STATE, root), read_places(data, root)
    settings = policy_part(
        ProjectSettings,
        data,
        state=state,
        environments=tuple(sorted(environments)),
        environment=env,
        notify=read_notify(data),
        spark_conf=read_spark_conf(data),
        name=data.get("name") or root.name,
        places=places,
        storage=storage_kinds(data, (*locations, *places.roots, state)),
    )
    budgets = tuple((absolute_glob(glob, root), budget) for glob, budget in settings.budgets.tables)
    return replace(settings, budgets=replace(settings.budgets, tables=budgets))


def with_environment(document: Document, environ: Mapping[str, str]) -> tuple[Document, list[Diagnostic]]:
    """Put environment variables into the texts of maintainer.yml.

    ``${env:NAME}`` must be set; ``${env:NAME:-default}`` has a way out. Replaced after parsing, so a value can
    never become a key or a list. Keys are not touched, and every place stays what it was in the file.
    """
    findings: list[Diagnostic] = []
    data = _replaced(document.data, (), document, environ, findings)
    assert isinstance(data, dict)
    problems = (
        *state_problems(document, data),
        *notify_problems(document, data),
        *spark_problems(document),
    )
    return dataclasses.replace(document, data=data), [*findings, *problems]


_FILLED_IN = frozenset({"state", "owner", "roots", "databases"})
"""Keys of maintainer.yml whose texts name something."""


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
    if not isinstance(value, str):
        return value

    def refuse(message: str, help: str = "set it, or give a default as in `${env:NAME:-default}`") -> None:
        findings.append(document.error_at(path, "P354", message, help))

    if not _FILLED_IN.isdisjoint(path[-2:]) and (template := TEMPLATE.search(value)):
        name = re.sub(r"\W", "", template[0]) or "NAME"
        refuse(f"`{template[0][:60]}` is not filled in, and would be part of the name", f"write `${{env:{name[:60]}}}`")

    def text_of(match: re.Match[str]) -> str:
        variable = _VARIABLE.fullmatch(match.group())
        if variable is None:
            refuse(f"`{match.group()}` is not an environment variable")
            return match.group()
        text = environ.get(variable[1], variable[2])
        if text is None:
            refuse(f"the environment variable `{variable[1]}` is not set")
            return match.group()
        return text

    return _OPENING.sub(text_of, value)


LEDGER_POLICY = BUILT_IN.file
"""What stands where other tables have the name of their policy file."""

_LAYER = built_in_layer(
    {
        "description": "maintainer's ledger: one row for each step of each run",
        "tags": ["maintainer-ledger"],
        "optimize.maxFileSize": "128MiB",
        "optimize.when.minSmallFiles": 20,
        # What Delta keeps by default: a longer one would have to be set on the table first.
        "vacuum.retention": "7d",
        "vacuum.every": "7d",
    }
)


def ledger_ref(project: ProjectSettings, root: Path) -> TableRef:
    """Return the ledger as a table of the project at ``root``, called as ``state:`` is written."""
    called, opened = table_ref(project.ledger_as_written, root), table_ref(project.ledger, root)
    return called if called.location == opened.location else TableRef(called.identifier, opened.location)


def may_be_there(ref: TableRef) -> bool:
    """Whether the ledger was made already; of one on other storage only the engine can tell."""
    place = ref.location
    if not os.path.isabs(place):
        return True
    try:
        # A run that died in its first append leaves a log without a commit: the next append makes the table.
        return any(name[:20].isdigit() for name in os.listdir(os.path.join(place, LOG_FOLDER)))
    except OSError:
        return False


def ledger_resolution(ref: TableRef, root: Path, timezone: str) -> Resolution:
    """Return the effective policy of the ledger."""
    return resolve(ref, LEDGER_POLICY, [_LAYER], root=root, timezone=timezone, named_by_file=False)
