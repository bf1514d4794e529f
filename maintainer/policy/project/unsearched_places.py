"""Tell whether a selection may mean tables that nobody could look for, because their place could not be searched.

Such a place stays in sight, as a problem of the run: without it a night that reached half of the lake would look like
one that had nothing to do there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from maintainer.model.closed_types import assert_never
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.table_search import SearchPlaces, TableProblem
from maintainer.policy.resolve.resolve import RuleSource
from maintainer.policy.selectors import Method, Selector, Term, in_path
from maintainer.policy.table_names import absolute_glob, identity, is_glob, is_uri, name_matches, plain_name, table_ref


def may_be_meant(
    place: TableProblem,
    include: Selector,
    leave_out: Selector,
    *,
    rules: Sequence[RuleSource],
    known: frozenset[str],
    root: Path,
    by_end: bool = False,
) -> bool:
    """Return whether a place that was not searched may hold tables that are selected and not excluded.

    Args:
        place: The place; one that is no path stands for a catalog.
        include: What is selected.
        leave_out: What is excluded; only names and globs that leave out all of the place count.
        rules: All rules: tables there may get their tags and owners from any of them.
        known: The identities of the tables that are known all the same, because a file or a record names them.
        root: The project's folder, where relative paths start.
        by_end: Whether a name may be the end of a table's name.
    """
    if any(all(_leaves_out(term, place.table, root) for term in terms) for terms in leave_out.alternatives):
        return False
    return not include.alternatives or any(
        all(_may_match(term, place, rules, known, root, by_end) for term in terms) for terms in include.alternatives
    )


def _may_match(
    term: Term, place: TableProblem, rules: Sequence[RuleSource], known: frozenset[str], root: Path, by_end: bool
) -> bool:
    match term.method:
        case Method.TABLE:
            return _may_lie_in(term.value, place.table, known, root, by_end)
        case Method.TAG:
            return any(term.value in (rule.tags or ()) for rule in rules)
        case Method.OWNER:
            return any(rule.document.data.get("owner") == term.value for rule in rules)
        case Method.PATH:
            files = [place.file, *(rule.document.file for rule in rules if rule.manages)]
            return any(in_path(file, term.value, root) for file in files)
        case Method.RESULT:
            return False  # a table of an earlier run is known by its record
        case Method.STATE | Method.DUE | Method.DRIFTED | Method.UNMANAGED:
            return True  # nobody can know
        case _:
            assert_never(term.method)


def _may_lie_in(written: str, place: TableRef, known: frozenset[str], root: Path, by_end: bool) -> bool:
    if is_glob(written):
        glob = absolute_glob(written, root)
        if place.is_path:
            return SearchPlaces((place.location,)).may_hold(glob)
        return glob.startswith("*") or "/" not in glob
    ref = table_ref(written, root)
    if identity(ref) in known:
        return False
    if by_end and not written.startswith("/") and not is_uri(written):
        return True
    return SearchPlaces((place.location,)).cover(ref) if place.is_path else not ref.is_path


def _leaves_out(term: Term, place: TableRef, root: Path) -> bool:
    if term.method is not Method.TABLE:
        return False
    if identity(table_ref(term.value, root)) == identity(place):
        return True
    below = f"{plain_name(place).rstrip('/')}/"
    return is_glob(term.value) and name_matches(below, [absolute_glob(term.value, root)])
