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
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from maintainer.errors import NoEnvironment
from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.model.table.store_kinds import STORE_KINDS, store_kind
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.diagnostics import Diagnostic, nearest
from maintainer.policy.project.project_sections import (
    DEFAULT_STATE,
    LEDGER_NAME,
    Notify,
    Prices,
    SparkSettings,
    budget_problems,
    ledger_in,
    notify_problems,
    place_problems,
    spark_problems,
)
from maintainer.policy.project.table_search import SearchPlaces, read_places
from maintainer.policy.resolve.merge import built_in_layer
from maintainer.policy.resolve.policy_fields import duration, policy_part, setting, size
from maintainer.policy.resolve.policy_settings import MOST
from maintainer.policy.resolve.resolve import Resolution, resolve
from maintainer.policy.resolve.resolved import BUILT_IN
from maintainer.policy.schema.schema_check import TEMPLATE
from maintainer.policy.table_names import absolute_glob, absolute_path, name_matches, plain_name, table_ref
from maintainer.policy.yaml.yaml_document import Path as DataPath
from maintainer.policy.yaml.yaml_document import YamlDocument

EVERYBODY = "*"
"""Stands for every owner that has no budget under its own name."""


_NO_BOUND, _NO_LIMIT = "remove it for no bound", "remove it for no limit"
_NAMES: dict[str, Any] = {"maxProperties": 1000, "propertyNames": {"minLength": 1, "maxLength": 300}}
_ENGINE: dict[str, Any] = {"enum": ["transaction", "command"], "example": "command"}
_STATE: dict[str, Any] = {"minLength": 1, "maxLength": 1000}


class Scorer(StrEnum):
    """How rewrites are ranked: by our own absolute figure, or as OpenHouse's AutoComp does."""

    BENEFIT = "benefit"
    AUTOCOMP = "autocomp"


@dataclass(frozen=True, slots=True)
class Budget:
    """At most so much; None is no bound."""

    size_bytes: int | None = size(key="maxBytes", above_zero=_NO_BOUND, note="no limit", example="2TiB")
    """Most bytes to rewrite in one run."""
    num_files: int | None = setting(
        key="maxFiles", minimum=1, maximum=MOST, unit="files", note="no limit", example=100000
    )
    """Most files to rewrite in one run."""
    seconds: float | None = duration(key="maxTime", above_zero=_NO_BOUND, note="no limit", example="4h")
    """Most time to spend on rewrites in one run, estimated from the speed of past runs."""

    @property
    def bounded(self) -> bool:
        """Whether anything is bounded."""
        return (self.size_bytes, self.num_files, self.seconds) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Budgets:
    """Budgets of one run: of the whole run, of each owner (``*`` for each that is not named), and of each table."""

    run: Budget = setting(Budget(), key=".")
    owners: tuple[tuple[str, Budget], ...] = setting(
        (), **_NAMES, each="Budget of one owner's tables.", example={"team-sales": {"maxBytes": "500GiB"}}
    )
    """Budgets by owner, which all tables of the owner share in one run. `"*"` is for each owner that is not named."""
    tables: tuple[tuple[str, Budget], ...] = setting(
        (), **_NAMES, each="Budget of one table.", example={"*": {"maxBytes": "100GiB"}}
    )
    """Budgets of single tables in one run, by a glob on the name or path; the first match counts. A rewrite is cut to
    the bins that fit; the others wait for the next run."""
    scorer: Scorer = setting(Scorer.BENEFIT, example="autocomp")
    """Which rewrites come first. `benefit` ranks by what a rewrite saves readers per byte, independent of other tables.
    `autocomp` uses the score of OpenHouse's AutoComp, which is relative to the other tables of the run."""

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
        bounds = {name: value for name, value in dataclasses.asdict(given).items() if value is not None}
        return replace(self, run=replace(self.run, **bounds))


_VARIABLE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")
_OPENING = re.compile(r"\$\{env:[^}]*\}?")


@dataclass(frozen=True, slots=True)
class Environment(SearchPlaces):
    """What an environment may say otherwise than the project."""

    engine: str | None = setting(**_ENGINE)
    """The engine in this environment."""
    state: str | None = setting(**_STATE, example="/srv/maintainer/dev")
    """The state in this environment. `${env:NAME}` is replaced."""


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The project's own settings, complete; None means unbounded. Paths are absolute or URIs.

    ``environment`` is the one that was asked for. ``name`` is that of the project's folder where none is given.
    """

    state: str = setting(
        DEFAULT_STATE,
        **_STATE,
        examples=["s3://lake/_maintainer", "/srv/maintainer/prod", "${env:MAINTAINER_STATE:-.maintainer}"],
    )
    """Where to keep what must last between runs: run folders, quarantine, leases, the ledger. A folder that no job
    deletes, or a place on S3 (`s3://`), Azure (`abfss://`) or Google (`gs://`). `${env:NAME}` is replaced."""
    timezone: str = setting("UTC", minLength=1, maxLength=100, form="timezone", example="Europe/Berlin")
    """IANA time zone of windows that do not name one."""
    max_plan_age_seconds: int = duration("24h", above_zero="write a duration like `24h`")
    """A saved plan older than this is refused."""
    max_failures: int | None = setting(
        key="limits.maxFailures", minimum=1, maximum=1000000, unit="tables", note="no limit", example=3
    )
    """Start no more tables after this many have failed."""
    max_bytes: int | None = size(key="limits.maxBytes", above_zero=_NO_LIMIT, note="no limit", example="5TiB")
    """Most bytes to rewrite in one run."""
    max_files: int | None = setting(
        key="limits.maxFiles", minimum=1, maximum=MOST, unit="files", note="no limit", example=1000000
    )
    """Most files to rewrite or delete in one run."""
    timeout_seconds: int | None = duration(key="limits.timeout", above_zero=_NO_LIMIT, note="no limit", example="8h")
    """Most time for one run."""
    batches: tuple[int | str, ...] = setting(
        (),
        items={
            "type": ["integer", "string"],
            "minimum": 1,
            "maximum": 1000000,
            "pattern": "^(100|[1-9][0-9]?)%$",
            "examples": ["20%"],
        },
        uniqueItems=None,
        minItems=1,
        maxItems=20,
        example=[1, 5, "20%"],
    )
    """Starts tables in batches: a number or a share of the tables that have work; the last size repeats. The next batch
    starts when every table of the one before has ended; a table that gave way to another writer or run holds nothing
    up. `limits.maxFailures` failures (without it: one) stop the run, and so does one failed proof. `--batches`
    overrides this."""
    environments: tuple[str, ...] = setting(
        (),
        of=Environment,
        each="One environment. What it names replaces what the project says.",
        propertyNames={"pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]*$", "maxLength": 100},
        maxProperties=50,
        example={"dev": {"overrides": {"limits": {"maxBytes": "10GiB"}}}},
    )
    """Environments by name; choose one with `--env`."""
    environment: str | None = None
    engine: str | None = setting(spelled="transaction", **_ENGINE)
    """How a plan is carried out. `transaction` uses Delta's transaction and proves each rewrite before it commits.
    `command` uses Delta's own commands and proves afterwards, also over Spark Connect. `--engine` overrides this."""
    single_writer: bool = setting(False, example=True)
    """Declares that no other process writes to these tables during a run. Needed only on S3 without conditional writes
    and on disks without hard links; there, without it, nothing is written (A432, A433)."""
    spread: bool | None = setting(None, note="only with a master that is not local", example=True)
    """Whether Spark's executors read, write and prove the bins of lanes `copy` and `local`, and not this process. They
    need the package: see Clusters. `--spread` and `--no-spread` override this."""
    scratch_bytes: int | None = size(
        key="limits.maxScratch",
        above_zero="remove it for half of what is free",
        note="half of what is free",
        example="20GiB",
    )
    """Most bytes that copies of files of an object store take on this machine, all tables together; and as much on each
    executor, of which each of its tasks has an equal part. They lie in the folder for temporary files (`TMPDIR`), or in
    that of the executor. A bin that finds no room is rewritten by Spark, which reads the store itself."""
    budgets: Budgets = setting(Budgets(), key="budget", example={"maxBytes": "2TiB", "maxTime": "4h"})
    """How much a run may spend on rewrites. It does the best ones that fit and leaves the others for the next run.
    `--budget-...` overrides the values for the whole run. A budget never fails a run; use `limits` for what must not
    happen."""
    notify: Notify | None = setting(example={"url": "${env:MAINTAINER_HOOK:-}", "on": ["quarantine"]})
    """Where to send a message when a table needs attention: one HTTP POST with a JSON body; Slack and others show its
    `text`. If it cannot be sent, the run does not fail."""
    spark: SparkSettings = setting(SparkSettings(), example={"conf": {"spark.driver.memory": "4g"}})
    """Settings of Spark for every command. `--conf` on the command line overrides them."""
    storage: tuple[str, ...] = setting(
        (),
        items={
            "type": None,
            "enum": list(dict.fromkeys(kind.connector for kind in STORE_KINDS.values() if kind.connector)),
            "description": "`s3` for s3:// and s3a://, `azure` for abfss://, `gcs` for gs://.",
            "examples": ["s3"],
        },
        maxItems=3,
        example=["s3"],
    )
    """Object stores that your tables are on. Their connectors for Spark are downloaded once, and checked. Without this
    key the tables' addresses decide; `[]` downloads none."""
    name: str = setting("", minLength=1, maxLength=100, example="acme-lakehouse")
    """Name of the project, shown in its reports. Default: the name of its folder."""
    prices: Prices = setting(Prices(), example={"currency": "EUR", "scannedTiB": 5.0, "storedGiBMonth": 0.023})
    """What things cost. Reports then show in money what was saved and spent, with the formula."""
    places: SearchPlaces = setting(SearchPlaces(), key=".")

    @property
    def ledger(self) -> str:
        """Where the ledger is: a path or URI of a Delta table's folder, as Spark opens it."""
        return ledger_in(self.state)

    @property
    def ledger_as_written(self) -> str:
        """The same place as people know it, from ``state:``."""
        return posixpath.join(self.state, LEDGER_NAME)


def project_settings(
    document: YamlDocument | None, root: Path, env: str | None, locations: Iterable[str] = ()
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
        near, where = nearest(env, environments), document.file if document else str(root)
        allowed = ", ".join(sorted(environments)) or "none: maintainer.yml has no `environments:`"
        help = f"did you mean `{near}`?" if near else "write it in maintainer.yml, or leave --env out"
        raise NoEnvironment(f"there is no environment `{env}`", where=where, found=env, allowed=allowed, help=help)
    chosen = environments.get(env) or {} if env is not None else {}
    data = {**data, **{key: value for key, value in chosen.items() if value is not None}}
    state, places = absolute_path(data.get("state") or DEFAULT_STATE, root), read_places(data, root)
    settings = policy_part(
        ProjectSettings,
        data,
        state=state,
        environments=tuple(sorted(environments)),
        environment=env,
        name=data.get("name") or root.name,
        places=places,
        storage=_storage_kinds(data, (*locations, *places.roots, state)),
    )
    budgets = tuple((absolute_glob(glob, root), budget) for glob, budget in settings.budgets.tables)
    return replace(settings, budgets=replace(settings.budgets, tables=budgets))


def _storage_kinds(data: Mapping[str, object], locations: Iterable[str]) -> tuple[str, ...]:
    """Return the kinds of object store whose connectors are needed, each once.

    Args:
        data: maintainer.yml. What it says counts alone, also an empty list: then the Spark has its own connectors.
        locations: Addresses of tables and of the ledger; names and local paths say nothing.
    """
    written = data.get("storage")
    if isinstance(written, list):
        return tuple(dict.fromkeys(str(kind) for kind in written))
    schemes = sorted({urlsplit(location).scheme.lower() for location in locations if "://" in location})
    kinds = (store_kind(f"{scheme}:").connector for scheme in schemes)
    return tuple(dict.fromkeys(kind for kind in kinds if kind is not None))


def with_environment(document: YamlDocument, environ: Mapping[str, str]) -> tuple[YamlDocument, list[Diagnostic]]:
    """Put environment variables into the texts of maintainer.yml.

    ``${env:NAME}`` must be set; ``${env:NAME:-default}`` has a way out. Replaced after parsing, so a value can
    never become a key or a list. Keys are not touched, and every place stays what it was in the file.
    """
    findings: list[Diagnostic] = []
    data = _replaced(document.data, (), document, environ, findings)
    assert isinstance(data, dict)
    findings += [*place_problems(document, data), *notify_problems(document, data)]
    return dataclasses.replace(document, data=data), [*findings, *spark_problems(document), *budget_problems(document)]


_FILLED_IN = frozenset({"state", "owner", "roots", "databases"})
"""Keys of maintainer.yml whose texts name something."""


def _replaced(
    value: object, path: DataPath, document: YamlDocument, environ: Mapping[str, str], findings: list[Diagnostic]
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
