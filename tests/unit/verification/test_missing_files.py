"""Files that were missing before a commit are not that commit's."""

from __future__ import annotations

from collections.abc import Sequence

from maintainer.model.plan.plan import Checks
from maintainer.model.run.receipts import Proof
from maintainer.model.table.storage_facts import MissingFiles
from maintainer.model.table.table_facts import TableFacts
from maintainer.verification.commit_checks_after import GreatExpectationsVerifier, _Check
from tests.support.tables.builders import make_facts


class Versions:
    """Says which live files are missing, version by version."""

    def __init__(self, missing: dict[int, tuple[str, ...]]) -> None:
        self.missing = missing
        self.asked: list[int] = []

    def missing_files(self, facts: TableFacts, version: int) -> MissingFiles:
        self.asked.append(version)
        return MissingFiles(10, self.missing.get(version, ()))

    def dataframe(self, facts: TableFacts, version: int) -> object:
        raise AssertionError("not asked for")

    def columns(self, facts: TableFacts, version: int) -> tuple[str, ...]:
        raise AssertionError("not asked for")

    def row_count(self, facts: TableFacts, version: int, *, scan: bool, beside: int | None = None) -> int:
        raise AssertionError("not asked for")

    def files_there(self, facts: TableFacts, paths: Sequence[str]) -> frozenset[str]:
        raise AssertionError("not asked for")

    def proof(self, facts: TableFacts, version: int) -> Proof:
        raise AssertionError("not asked for")

    def rows_differ(self, facts: TableFacts, version_a: int, version_b: int) -> int:
        raise AssertionError("not asked for")


def _check(versions: Versions) -> _Check:
    return _Check(GreatExpectationsVerifier(), versions, make_facts(name="t"), 8, Checks())


def test_the_version_before_is_looked_at_only_where_something_is_missing() -> None:
    versions = Versions({})
    assert _check(versions)._missing() == MissingFiles(10, ())
    assert versions.asked == [8]


def test_only_what_went_missing_since_the_version_before_counts() -> None:
    check = _check(Versions({7: ("old-1", "old-2"), 8: ("new", "old-1")}))
    assert check._missing() == MissingFiles(10, ("new",))
    assert check.notes == ["live files missing before this commit: 1, such as old-1"]
