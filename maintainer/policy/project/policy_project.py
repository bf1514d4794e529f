"""Load a project: read and check every file, and resolve the policy of each table."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from maintainer.errors import ProjectError
from maintainer.model.cached_property import cached_property
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.diagnostics import Diagnostic, nearest, nearest_table, refuse_first
from maintainer.policy.policy_checks import check_effective, check_extends, check_profiles, check_rules, check_tables
from maintainer.policy.project.doubtful_policies import (
    Reach,
    check_names,
    check_reach,
    check_suspension,
    check_table_names,
)
from maintainer.policy.project.policy_loader import PolicyLoader
from maintainer.policy.project.project_settings import (
    ProjectSettings,
    ledger_ref,
    ledger_resolution,
    may_be_there,
    project_settings,
)
from maintainer.policy.project.table_search import (
    ManagedTables,
    TableProblem,
    TableSearch,
    check_against_places,
    managing_rule,
    places_text,
)
from maintainer.policy.resolve.merge import TAGS, Layer, Level, document_layer
from maintainer.policy.resolve.resolve import (
    ProfileSource,
    Resolution,
    RuleSource,
    TableSource,
    by_size,
    own_tags,
    reaching_rules,
    resolve,
    tags_of,
)
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.table_names import may_be_an_end, name_key, plain_name, table_called, table_ref
from maintainer.policy.yaml.discovery import find_files
from maintainer.policy.yaml.yaml_document import YamlDocument


@dataclass(frozen=True)
class LoadedProject:
    """A project after reading.

    ``tables``, ``rules`` and ``profiles`` are the files without errors of their own. ``file_findings`` are about single
    files and their names. ``files_read`` counts every file, ``policy_count`` tables and rules.
    """

    root: Path
    project: ProjectSettings
    tables: tuple[TableSource, ...]
    rules: tuple[RuleSource, ...]
    profiles: Mapping[str, ProfileSource]
    defaults: Layer | None
    overrides: Layer | None
    file_findings: tuple[Diagnostic, ...]
    files_read: int
    policy_count: int
    documents: Mapping[str, YamlDocument]
    """Every file that could be read, by its name in messages; without their texts."""

    keeps_policies: bool = True
    """Whether checking keeps the policies that it resolves: they take a third of the memory."""

    not_read: tuple[str, ...] = ()
    """Tables whose files were not read, because only one other table was asked for, as the files call them."""

    search: TableSearch | None = None
    """What a search found in the declared places; None as long as nobody looked."""

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All findings, sorted, each once: a shared line is found wrong by many tables."""
        matched = {table.written: self.rules_by_file[table.document.file] for table in self.tables}
        findings = [*self.file_findings, *check_rules(matched)]
        if not any(finding.is_error for finding in findings):
            findings.extend(self._in_effect[1] if self.keeps_policies else self._findings_of(self.each_resolution()))
            findings.extend(check_against_places(self.rules, self.project.places, self.search, self.tables))
            findings.extend(check_reach(self._reach))
        places: dict[tuple[str, str, int, int], Diagnostic] = {}
        for finding in sorted(findings):
            places.setdefault((finding.code, finding.file, finding.span.line, finding.span.column), finding)
        return tuple(places.values())

    def _findings_of(self, resolutions: Iterable[Resolution]) -> Iterator[Diagnostic]:
        today = datetime.now(ZoneInfo(self.project.timezone)).date()
        for of_size in itertools.chain.from_iterable(resolution.each_size for resolution in resolutions):
            yield from check_effective(of_size)
            yield from check_suspension(of_size, today)

    @cached_property
    def _in_effect(self) -> tuple[tuple[ResolvedPolicy, ...], tuple[Diagnostic, ...]]:
        """Every policy, and what is wrong with them: what they are merged from takes more room, and is not kept."""
        both = [(each.policy, tuple(self._findings_of((each,)))) for each in self.each_resolution()]
        findings = itertools.chain.from_iterable(found for _, found in both)
        return tuple(sorted((policy for policy, _ in both), key=lambda policy: policy.table)), tuple(findings)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that are errors: while there is one, no command may act on this project."""
        return tuple(finding for finding in self.diagnostics if finding.is_error)

    def require_valid(self) -> None:
        """Refuse to go on with a project that has errors.

        Raises:
            ProjectError: E616, there are errors; names the first and says how to see all.
        """
        if errors := self.errors:
            first, others = errors[0], len(errors) - 1
            message = f"{first.message} [{first.code}]" + (f", and {others} more" if others else "")
            help = "`maintainer validate` shows every error with its place"
            raise ProjectError(message, code="E616", where=first.place, help=help)

    def each_resolution(self) -> Iterator[Resolution]:
        """Resolve every table: those of files in the order of files, then what rules manage, then the ledger."""
        for table in self.tables:
            resolution = self._resolve(table)
            if resolution is not None:
                yield resolution
        yield from self.managed.resolutions
        if self.ledger is not None:
            yield ledger_resolution(self.ledger, self.root, self.project.timezone)

    @cached_property
    def managing_rules(self) -> tuple[RuleSource, ...]:
        """The rules with ``manage: true``, from low to high priority."""
        return tuple(rule for rule in self.rules if rule.manages)

    @property
    def problems(self) -> tuple[TableProblem, ...]:
        """What a search could not do, and tables that have no policy because rules disagree about them."""
        return (*(() if self.search is None else self.search.problems), *self.managed.refused)

    @property
    def searches(self) -> bool:
        """Whether a search has to be made before all tables are known."""
        return bool(self.managing_rules and self.project.places)

    @property
    def has_no_table_yet(self) -> bool:
        """Whether no file names a table and the list of places to look in is empty, as `maintainer init` leaves it."""
        return not self.tables and bool(self.managing_rules) and self.project.places.none_yet

    @cached_property
    def managed(self) -> ManagedTables:
        """The tables without a file that rules manage, as far as a search found them."""
        resolutions: list[Resolution] = []
        refused: list[TableProblem] = []
        shared: dict[tuple[int, ...], Resolution] = {}
        for ref, rule in self._found_tables():
            rules = self.match_rules_for(ref)
            key = tuple(map(id, (*rules, rule)))
            if key in shared:  # the rules say the same of each table; thousands of copies would fill the memory
                resolutions.append(replace(shared[key], policy=replace(shared[key].policy, table=ref)))
                continue
            try:
                resolution = self._resolve_by_rules(ref, rules, rule)
                findings = itertools.chain.from_iterable(map(check_effective, resolution.each_size))
                refuse_first(finding for finding in findings if finding.is_error)
            except ProjectError as error:
                refused.append(TableProblem(ref, rule.document.file, error, rule.line))
            else:
                resolutions.append(resolution)
                if not resolution.sizes:
                    shared[key] = resolution
        return ManagedTables(tuple(resolutions), tuple(refused))

    def _found_tables(self) -> Iterator[tuple[TableRef, RuleSource]]:
        if self.search is not None:
            named = {table.key for table in self.tables} | {name_key(ledger_ref(self.project, self.root))}
            yield from self.search.managed_by(self.managing_rules, self.project.places, named)

    @cached_property
    def ledger(self) -> TableRef | None:
        """The ledger, where it is kept by the policy of its own; None where a file names it, or it is not there yet."""
        ref = ledger_ref(self.project, self.root)
        return None if any(table.key == name_key(ref) for table in self.tables) or not may_be_there(ref) else ref

    def resolved(self) -> tuple[ResolvedPolicy, ...]:
        """Return the effective policy of every table, and of the ledger, sorted by table.

        A table whose file, or a profile that it extends, has errors is left out: ask for ``errors`` first. Tables that
        rules manage are among them once a ``search`` was made.
        """
        return self._in_effect[0]

    def resolve_table(self, identifier: str, *, managed: bool = False) -> ResolvedPolicy:
        """Return the effective policy of one table; see ``resolution_of``."""
        return self.resolution_of(identifier, managed=managed).policy

    def resolution_of(self, identifier: str, *, managed: bool = False) -> Resolution:
        """Resolve one table, in any spelling, or by the end of its name where that fits one known table only.

        Args:
            identifier: The table.
            managed: Only a table that a file names or a rule manages; else also one that rules merely reach.

        Raises:
            ProjectError: E613 nothing manages the table, or several are called so. E617 rules disagree about it.
            ProjectError: E616, the table's own files have errors, or it has none and others have.
        """
        ref = table_ref(identifier, self.root)
        for table in self.tables:
            if table.key == name_key(ref):
                resolution = self._resolve(table)
                if resolution is None:  # a profile of its that does not exist, which is an error
                    self.require_valid()
                assert resolution is not None
                return resolution
        self.require_valid()  # its file may be one of those with errors
        if self.ledger is not None and name_key(self.ledger) == name_key(ref):
            return ledger_resolution(self.ledger, self.root, self.project.timezone)
        manager = self.manager_of(ref)
        if manager is not None and (self.search is None or self.search.may_have(ref)):
            return self._resolve_by_rules(ref, self.match_rules_for(ref), manager)
        if (meant := self.called(identifier)) is not None and name_key(meant) != name_key(ref):
            return self.resolution_of(meant.identifier, managed=managed)
        rules = () if managed or manager is not None else self.match_rules_for(ref)
        unsearched = () if self.search is None else self.search.problems
        if not rules or (unsearched and may_be_an_end(identifier)):
            raise unsearched[0].error if unsearched else self._unmanaged(identifier, ref)
        return self._resolve_by_rules(ref, rules)

    def called(self, written: str) -> TableRef | None:
        """Return the table of a file or of a search whose name ends like this, None if none; several are E613."""
        keys = [table.key for table in self.tables]
        found = () if self.search is None else self.search.tables
        others = (table.names for table in found if not table.is_one_of(keys))
        return table_called(written, (*((table.ref,) for table in self.tables), *others))

    def names(self, identifier: str) -> bool:
        """Tell whether a table has a policy of its own under this name, in any spelling: then nothing is searched."""
        keys = {*(table.key for table in self.tables), name_key(ledger_ref(self.project, self.root))}
        return name_key(table_ref(identifier, self.root)) in keys

    def manager_of(self, ref: TableRef) -> RuleSource | None:
        """Return the rule that manages a table which no file names, None if none does; nothing is looked for."""
        return managing_rule(ref, self.managing_rules, self.project.places, self.names_of(ref))

    def match_rules_for(self, ref: TableRef, tags: Iterable[str] = ()) -> tuple[RuleSource, ...]:
        """Return the rules that reach a table with these tags of its own, from low to high priority, at any size."""
        all_tags = own_tags([frozenset(tags), *self._default_tags])
        return reaching_rules(self.rules, plain_name(ref), all_tags, self.names_of(ref))

    def names_of(self, ref: TableRef) -> tuple[str, ...]:
        """Return all plain names under which a search found a table, none where it has only one."""
        return () if self.search is None else self.search.names_of(ref)

    @cached_property
    def _default_tags(self) -> tuple[frozenset[str], ...]:
        setting = None if self.defaults is None else self.defaults.leaves.get(TAGS)
        return () if setting is None or (given := tags_of(setting.value)) is None else (given,)

    @cached_property
    def rules_by_file(self) -> Mapping[str, tuple[RuleSource, ...]]:
        """The rules that reach the table of each table file, by the file."""
        return {table.document.file: self.match_rules_for(table.ref, self._tags_of(table)) for table in self.tables}

    @property
    def _reach(self) -> Reach:
        reaching = [(plain_name(table.ref), self.rules_by_file[table.document.file]) for table in self.tables]
        if self.search is not None:
            reaching += [(plain_name(ref), self.match_rules_for(ref)) for ref, _ in self._found_tables()]
        searched = self.search is not None and not self.search.problems
        unknown = bool(self.not_read) or (bool(self.managing_rules) and not searched)
        given = (rule.tags for _, rules in reaching for rule in rules)
        tags = own_tags([*map(self._tags_of, self.tables), *self._default_tags, *given])
        return Reach(self.rules, tuple(reaching), tags, unknown=unknown)

    def _tags_of(self, table: TableSource) -> frozenset[str]:
        profiles = [self.profiles[name].tags for name in table.extends if name in self.profiles]
        return own_tags([*profiles, table.tags])

    def _resolve(self, table: TableSource) -> Resolution | None:
        if any(name not in self.profiles for name in table.extends):
            return None
        above = [*(self.profiles[name].layer for name in table.extends), table.layer()]
        rules = self.rules_by_file[table.document.file]
        return by_size(lambda reaching: self._build(table.ref, table.document.file, reaching, above), rules)

    def _resolve_by_rules(
        self, ref: TableRef, rules: tuple[RuleSource, ...], manager: RuleSource | None = None
    ) -> Resolution:
        refuse_first(check_rules({ref.identifier: rules}), "E617")
        managers = [rule for rule in rules if rule.manages] if manager else []
        first = min(managers, key=lambda rule: rule.match.min_size_bytes, default=rules[-1])

        def at(reaching: Sequence[RuleSource]) -> Resolution:
            manages = next((rule for rule in reversed(reaching) if managers and rule.manages), None)
            lead = manages or first
            start = (first.match.min_size_bytes, first.min_size_origin) if managers and manages is None else None
            built = self._build(ref, lead.document.file, reaching, [])
            line = lead.line if managers else None
            return replace(built, policy=replace(built.policy, rule_line=line, managed_from=start))

        return by_size(at, rules)

    def _build(self, ref: TableRef, file: str, rules: Iterable[RuleSource], above: list[Layer]) -> Resolution:
        levels = (self.defaults, *(rule.layer for rule in rules), *above, self.overrides)
        layers = [level for level in levels if level is not None]
        return resolve(ref, file, layers, root=self.root, timezone=self.project.timezone, named_by_file=bool(above))

    def _unmanaged(self, identifier: str, ref: TableRef) -> ProjectError:
        reached = self.manager_of(ref) is not None or bool(self.match_rules_for(ref))
        rules = "no rule manages a table that is called so" if reached else "no rule reaches it"
        write_one = "write a policy for it: `version: 1` and `table:` are enough"
        if self.search is not None and self.search.is_recorded and may_be_an_end(identifier):
            rules = f"this command does not look into {places_text(self.project.places)}"
            write_one = "write its whole name; `maintainer list` looks, and has all names"
        excluded = (rule.excluded_at(plain_name(ref), self.names_of(ref)) for rule in reversed(self.rules))
        if (where := next((place for place in excluded if place is not None), None)) is not None:
            what, way_out = f"`match.exclude` leaves `{identifier}` out", f"remove that item, or {write_one}"
            return ProjectError(what, code="E613", where=where, found=identifier, help=way_out)
        managed = {resolution.policy.table.identifier for resolution in self.managed.resolutions}
        not_read = {table_ref(written, self.root).identifier for written in self.not_read}
        near = nearest_table(identifier, {table.ref.identifier for table in self.tables} | managed | not_read)
        near = near or nearest(identifier, {*(table.written for table in self.tables), *self.not_read})
        what, way_out = f"no policy names `{identifier}`, and {rules}", f"did you mean `{near}`?" if near else write_one
        return ProjectError(what, code="E613", found=identifier, help=way_out)


def load_project(
    root: Path,
    env: str | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    paths_from: Path | None = None,
    keeps_policies: bool = True,
    only: str | None = None,
) -> LoadedProject:
    """Read and check every file of a project.

    Args:
        root: The folder of maintainer.yml, or of policies/.
        env: The environment whose overrides apply; None for none.
        environ: Environment variables for maintainer.yml; the process's own by default.
        paths_from: Where relative table paths start, if not at ``root``: old files in a temporary folder still
            speak of the project they were taken from.
        keeps_policies: Whether policies will be asked for. Checking alone needs one at a time, and a third of
            the memory.
        only: The one table that is asked for, in any spelling: files that name another one are not read, nor checked.

    Raises:
        ProjectError: There is no project, it has too many files, or no such environment. What is wrong *in*
            files never raises: it is in ``diagnostics``.
    """
    root = Path(os.path.abspath(root))
    files = find_files(root)
    paths_from = root if paths_from is None else Path(os.path.abspath(paths_from))
    loader = PolicyLoader(root, paths_from, only)
    loader.findings.extend(files.findings)
    project_document = loader.read_project(files.project_file, os.environ if environ is None else environ)
    for path in (*files.policies, *files.profiles):
        loader.read_policy(path)
    good = None if project_document is None or project_document.file in loader.broken else project_document
    if good is None and project_document is not None:
        env = None  # what the environment says cannot be read; the errors of the file are reported
    tables, profiles = loader.tables, loader.named_profiles
    return LoadedProject(
        root=paths_from,
        project=project_settings(good, paths_from, env, (table.ref.location for table in tables)),
        tables=tuple(sorted(tables, key=lambda table: table.document.file)),
        rules=tuple(sorted(loader.rules, key=lambda rule: rule.sort_key)),
        profiles={each.name: each for each in reversed(profiles) if each.document.file not in loader.broken},
        defaults=document_layer(good, Level.DEFAULTS, ("defaults",)) if good else None,
        overrides=document_layer(good, Level.ENVIRONMENT, ("environments", env, "overrides")) if good and env else None,
        file_findings=(
            *loader.findings,
            *check_tables(loader.named_tables),
            *check_table_names(tables),
            *check_names(loader.documents),
            *check_profiles(profiles),
            *check_extends(loader.named_tables, (profile.name for profile in profiles)),
        ),
        files_read=len(files.policies) + len(files.profiles) + (files.project_file is not None),
        policy_count=len(files.policies),
        documents=loader.documents,
        keeps_policies=keeps_policies,
        not_read=tuple(loader.not_read),
    )
