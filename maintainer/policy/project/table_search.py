"""Tables without a file of their own: where they are looked for, what a search found, and which rules manage them.

``maintainer.yml`` declares the places: ``roots``, folders below which tables lie, and ``databases`` of the catalog. A
rule with ``manage: true`` manages those of the tables there that it matches. Nothing is looked for here: ``app`` does
that when it plans, and hands in the result.

A place that could not be searched stays in sight, as a problem of the run, if the selection may mean a table there:
without it a night that reached half of the lake would look like one that had nothing to do there.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, assert_never

from maintainer.errors import MaintainerError
from maintainer.model.cached_property import cached_property
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.resolve.policy_fields import setting
from maintainer.policy.resolve.resolve import Resolution, RuleSource, TableSource
from maintainer.policy.selectors import Method, Selector, SelectorTerm, in_path
from maintainer.policy.table_names import (
    absolute_glob,
    absolute_path,
    is_glob,
    is_uri,
    name_key,
    name_matches,
    plain_name,
    plain_parts,
    table_ref,
)
from maintainer.policy.yaml.yaml_document import YamlDocument
from maintainer.units import named

DEFAULT_DATABASE = "default"

DECLARE_A_PLACE = "add `roots: [lake]`, folders that contain tables, or `databases: [sales]` to maintainer.yml"


@dataclass(frozen=True, slots=True)
class SearchPlaces:
    """Where tables are looked for: absolute paths and URIs, and globs on databases of catalogs.

    ``none_yet`` says that maintainer.yml has an empty list of them, as that of a new project: nobody forgot it.
    """

    roots: tuple[str, ...] = setting(
        (),
        items={"minLength": 1, "maxLength": 1000, "examples": ["s3://bucket/lake"]},
        maxItems=100,
        spelled=[],
        example=["lake", "s3://bucket/lake"],
    )
    """Folders or URIs in which to look for tables that rules with `manage: true` match. `${env:NAME}` is replaced."""
    databases: tuple[str, ...] = setting(
        (),
        items={"pattern": "^[^\\s/]+$", "maxLength": 300, "examples": ["sales"]},
        maxItems=1000,
        spelled=[],
        example=["sales", "bronze_*", "prod.sales"],
    )
    """Databases in which to look for such tables; of Unity, `prod.sales`. Put globs in quotes, such as `"*"`."""
    none_yet: bool = False

    def __bool__(self) -> bool:
        return bool(self.roots or self.databases)

    def cover(self, ref: TableRef) -> bool:
        """Tell whether a search would come to a table, by its name alone."""
        if not ref.is_path:
            return database_matches(database_of(ref), self.databases)
        place = name_key(ref)
        return any(place == root or place.startswith(root.rstrip("/") + "/") for root in map(_root_key, self.roots))

    def may_hold(self, glob: str) -> bool:
        """Tell whether a table that fits a glob of a rule can lie in one of the places."""
        if glob.startswith("*"):
            return True
        if "/" in glob:
            fixed = name_key(TableRef(_fixed_part(glob) or "/"))
            keys = [_root_key(root).rstrip("/") for root in self.roots]
            return any(fixed.startswith(key) or key.startswith(fixed) for key in keys)
        database = glob.rpartition(".")[0]
        if is_glob(database) or not database:
            return bool(self.databases)
        return database_matches(database, self.databases)


def _root_key(root: str) -> str:
    return name_key(TableRef(root))


def _fixed_part(glob: str) -> str:
    """Return what every text that fits a glob begins with."""
    end = next((place for place, character in enumerate(glob) if character in "*?["), len(glob))
    return glob[:end]


def database_of(ref: TableRef) -> str:
    """Return the database of a name, behind its catalog if that is not the session's."""
    return ".".join(plain_parts(ref)[:-1]) or DEFAULT_DATABASE


def database_matches(database: str, globs: Iterable[str]) -> bool:
    """Tell whether a database of the catalog is one of those that are declared; case does not matter."""
    return any(fnmatch.fnmatchcase(database.lower(), glob) for glob in map(_database_glob, globs))


def catalog_meant(catalog: str, globs: Iterable[str]) -> bool:
    """Tell whether a database in a catalog but the session's may be one of those that are declared."""
    begin = f"{catalog.lower()}."
    return any(
        fixed.startswith(begin) or (fixed != glob and begin.startswith(fixed))
        for glob in map(_database_glob, globs)
        for fixed in [_fixed_part(glob)]
    )


def _database_glob(glob: str) -> str:
    return glob.lower().replace("`", "")


def read_places(data: Mapping[str, Any], root: Path) -> SearchPlaces:
    """Read ``roots`` and ``databases`` of maintainer.yml; relative paths start at ``root``."""
    roots, databases = data.get("roots"), data.get("databases")
    return SearchPlaces(
        tuple(dict.fromkeys(absolute_path(text, root) for text in roots or ())),
        tuple(databases or ()),
        none_yet=(roots is not None or databases is not None) and not roots and not databases,
    )


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table that a search came to.

    Args:
        names: Under which it was found, the one to call it by first: by name in the catalog before by path.
        aliases: Names of table files that lead to the same folder.
    """

    names: tuple[TableRef, ...]
    aliases: tuple[str, ...] = ()

    def is_one_of(self, identities: Iterable[str]) -> bool:
        """Tell whether a table file, or the ledger, is this table under any of its names."""
        keys = {*(name_key(name) for name in self.names), *self.aliases}
        return not keys.isdisjoint(identities)

    @property
    def plain_names(self) -> tuple[str, ...]:
        """Every name that globs of a rule are compared with."""
        return (*map(plain_name, self.names), *(alias.partition(":")[2] for alias in self.aliases))


@dataclass(frozen=True, slots=True)
class TableProblem:
    """A place that could not be searched to its end, or a table that has no policy because rules disagree about it.

    A table with a problem is selected like any other, a place by `Meant`. ``table`` is the place as messages
    call it, ``file`` is maintainer.yml or the rule's file.
    """

    table: TableRef
    file: str
    error: MaintainerError = field(compare=False)
    rule_line: int | None = None
    tags: tuple[str, ...] = ()
    owner: str | None = None

    def may_hold(self, ref: TableRef) -> bool:
        """Tell whether a table may lie in this place, which is no table; one that is no path stands for a catalog."""
        return SearchPlaces((self.table.location,)).cover(ref) if self.table.is_path else not ref.is_path


@dataclass(frozen=True)
class TableSearch:
    """What one search found in all declared places, and which of them it could not search to the end.

    ``notes`` say what was left out where that may be meant. ``is_recorded``: nobody searched, the tables are those of
    records.
    """

    tables: tuple[FoundTable, ...] = ()
    problems: tuple[TableProblem, ...] = ()
    notes: tuple[MaintainerError, ...] = field(default=(), compare=False)
    is_recorded: bool = False

    def may_have(self, ref: TableRef) -> bool:
        """Tell whether a table was found, or may lie in a place that was not searched to its end."""
        return any(table.is_one_of((name_key(ref),)) for table in self.tables) or self.leaves_open(ref)

    def leaves_open(self, ref: TableRef) -> bool:
        """Tell whether a table may lie in a place that was not searched to its end."""
        return any(place.may_hold(ref) for place in self.problems)

    def names_of(self, ref: TableRef) -> tuple[str, ...]:
        """Return all plain names under which a table was found; none of one that was found under no name but its own.

        A table file's is found, too, by the path or the name that the file does not have.
        """
        return self._names_by_key.get(name_key(ref), ())

    @cached_property
    def _names_by_key(self) -> Mapping[str, tuple[str, ...]]:
        several = [table for table in self.tables if len(table.names) + len(table.aliases) > 1]
        return {key: table.plain_names for table in several for key in (*map(name_key, table.names), *table.aliases)}

    def managed_by(
        self, rules: Sequence[RuleSource], places: SearchPlaces, named: Iterable[str]
    ) -> Iterator[tuple[TableRef, RuleSource]]:
        """Yield each table that a rule manages and no file names, with the rule of the highest priority.

        Args:
            rules: The rules that manage, from low to high priority.
            places: The places of the project as it is asked; another commit of it may declare others.
            named: Identities of all tables that have a policy of their own.
        """
        keys = frozenset(named)
        for table in self.tables:
            if table.is_one_of(keys):
                continue
            pairs = ((name, managing_rule(name, rules, places, table.plain_names)) for name in table.names)
            managed = next(((name, rule) for name, rule in pairs if rule is not None), None)
            if managed is not None:
                yield managed


@dataclass(frozen=True, slots=True)
class ManagedTables:
    """The tables that rules manage: those with an effective policy, and those without one."""

    resolutions: tuple[Resolution, ...] = ()
    refused: tuple[TableProblem, ...] = ()


def managing_rule(
    ref: TableRef, rules: Sequence[RuleSource], places: SearchPlaces, others: Collection[str] = ()
) -> RuleSource | None:
    """Return the rule of the highest priority that manages a table, None if none does.

    Args:
        ref: The table.
        rules: The rules that manage, from low to high priority.
        places: Where tables are looked for.
        others: Further names of the table, by which a rule may exclude it.
    """
    if not places.cover(ref):
        return None
    name = plain_name(ref)
    fitting = (rule for rule in reversed(rules) if rule.match.fits_name(name, others) and rule.match.fits_tags(()))
    return next(fitting, None)


def check_against_places(
    rules: Sequence[RuleSource], places: SearchPlaces, search: TableSearch | None, named_by_files: Iterable[TableSource]
) -> Iterator[Diagnostic]:
    """Report rules that can manage nothing, and names that are excluded and that no table has.

    Args:
        rules: All rules.
        places: Where tables are looked for.
        search: What was found there; None as long as nobody looked.
        named_by_files: The tables that files name.
    """
    own_names = [plain_name(table.ref) for table in named_by_files]
    yield from _check_managing([rule for rule in rules if rule.manages], places, own_names)
    if search is not None and not (search.is_recorded or search.problems or search.notes):
        names = [table.plain_names for table in search.tables]
        names += [(plain_name(table.ref), *search.names_of(table.ref)) for table in named_by_files]
        yield from _check_excluded(rules, places, {name: of_table for of_table in names for name in of_table})


def _check_managing(
    rules: Iterable[RuleSource], places: SearchPlaces, own_names: Sequence[str]
) -> Iterator[Diagnostic]:
    """Report rules to which no place is declared, or with a glob that fits nothing in the places.

    Of what is excluded only globs of paths count, and those that fit no table with a file. Nothing is said where the
    list of places is there and empty.
    """
    if places.none_yet:
        return
    for rule in rules:
        document: YamlDocument = rule.document
        if not places:
            message = (
                "this rule manages the tables that it matches, but maintainer.yml does not say where to look for them"
            )
            yield document.error_at(("manage",), "P386", message, DECLARE_A_PLACE)
            continue
        for at, glob in enumerate(rule.match.tables or ()):
            if not places.may_hold(glob):
                path = ("match", "tables", at)
                message = f"no table that fits `{document.data['match']['tables'][at]}` can be in the declared places"
                help = f"declared are {places_text(places)}; {DECLARE_A_PLACE}"
                yield document.warning_at(path, "P387", message, help)
        for at, glob in enumerate(rule.match.exclude):
            is_of_paths = "/" in glob and is_glob(written := document.data["match"]["exclude"][at])
            if is_of_paths and not places.may_hold(glob) and not any(name_matches(name, (glob,)) for name in own_names):
                message = f"no table that fits `{written}` can be in the declared places, so it excludes none"
                help = f"declared are {places_text(places)}; a glob begins at the project's folder, or with `*/`"
                yield document.warning_at(("match", "exclude", at), "P387", message, help)


def _check_excluded(
    rules: Iterable[RuleSource], places: SearchPlaces, names: Mapping[str, Sequence[str]]
) -> Iterator[Diagnostic]:
    """Warn of each name that a rule excludes and that no table has which it would match.

    Nothing is said of globs, which also keep out what is not there yet, and of names that no search comes to.
    """
    for rule in rules:
        reaching = replace(rule.match, exclude=())
        for at, name in enumerate(rule.match.exclude):
            if is_glob(name) or not places.cover(TableRef(name)) or any(map(reaching.fits_name, names.get(name, ()))):
                continue
            written = rule.document.data["match"]["exclude"][at]
            help = "correct it, or remove it; `maintainer inventory` shows which tables there are"
            message = f"`{written}` excludes no table that this rule would match"
            yield rule.document.warning_at(("match", "exclude", at), "P357", message, help)


def places_text(places: SearchPlaces) -> str:
    """Return the places as a part of a sentence."""
    texts = [f"`{place}`" for place in (*places.roots, *(f"{database}.*" for database in places.databases))]
    return named(texts, 3)


@dataclass(frozen=True, slots=True)
class Meant:
    """What a selection means, asked of places that could not be searched.

    Args:
        include: What is selected.
        leave_out: What is excluded; only names and globs that leave out all of a place count.
        rules: All rules: tables in a place may get their tags and owners from any of them.
        known: The identities of the tables that are known all the same, because a file or a record names them.
        root: The project's folder, where relative paths start.
        by_end: Whether a name may be the end of a table's name.
    """

    include: Selector
    leave_out: Selector
    rules: Sequence[RuleSource]
    known: frozenset[str]
    root: Path
    by_end: bool = False

    def may_be_in(self, place: TableProblem) -> bool:
        """Tell whether a place may hold tables that are selected and not excluded."""
        if any(all(self._leaves_out(term, place.table) for term in terms) for terms in self.leave_out.alternatives):
            return False
        return not self.include.alternatives or any(
            all(self._may_match(term, place) for term in terms) for terms in self.include.alternatives
        )

    def _may_match(self, term: SelectorTerm, place: TableProblem) -> bool:
        match term.method:
            case Method.TABLE:
                return self._may_lie_in(term.value, place)
            case Method.TAG:
                return any(term.value in (rule.tags or ()) for rule in self.rules)
            case Method.OWNER:
                return any(rule.document.data.get("owner") == term.value for rule in self.rules)
            case Method.PATH:
                files = [place.file, *(rule.document.file for rule in self.rules if rule.manages)]
                return any(in_path(file, term.value, self.root) for file in files)
            case Method.RESULT:
                return False  # a table of an earlier run is known by its record
            case Method.STATE | Method.DUE | Method.DRIFTED | Method.UNMANAGED:
                return True  # nobody can know
            case _:
                assert_never(term.method)

    def _may_lie_in(self, written: str, place: TableProblem) -> bool:
        if is_glob(written):
            glob = absolute_glob(written, self.root)
            if place.table.is_path:
                return SearchPlaces((place.table.location,)).may_hold(glob)
            return glob.startswith("*") or "/" not in glob
        ref = table_ref(written, self.root)
        if name_key(ref) in self.known:
            return False
        if self.by_end and not written.startswith("/") and not is_uri(written):
            return True
        return place.may_hold(ref)

    def _leaves_out(self, term: SelectorTerm, place: TableRef) -> bool:
        if term.method is not Method.TABLE:
            return False
        if name_key(table_ref(term.value, self.root)) == name_key(place):
            return True
        below = f"{plain_name(place).rstrip('/')}/"
        return is_glob(term.value) and name_matches(below, [absolute_glob(term.value, self.root)])
