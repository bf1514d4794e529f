"""Prove a commit that is already in the log, whoever made it (``maintainer verify``, and what a run left unproven).

Version N is compared with N-1, so what other writers did is in both. The commit's actions are read from its file in the
log, because a snapshot has already believed them. Rows are read by DuckDB where this process can read the files, and
through Delta else. No Spark session is started where DuckDB finds that nothing is wrong.

*Wrong* and *could not be checked* are two answers. The second means, for example, that a vacuum deleted the files.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.commit_history import commit_at
from maintainer.delta.storage.failures.engine_failures import table_errors
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import LiveFilesReader
from maintainer.delta.verify.commit_checks import CommitWork
from maintainer.delta.verify.version_reader import DeltaVersionReader
from maintainer.engine.step_meter import StepMeter
from maintainer.errors import CheckImpossible, LogUnreadable, TableError
from maintainer.model.run.commit_verdict import CheckResult, CommitVerification
from maintainer.model.run.receipts import Fingerprint, Proof
from maintainer.model.table.commit_records import MAINTENANCE, CommitStamp
from maintainer.model.table.table_facts import TableFacts

MAX_COMMITS_LOOKED_AT = 1000
"""How far back the newest maintenance commit is looked for."""

_WITHOUT_ROWS = {"CLUSTER BY", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "VACUUM", "VACUUM END", "VACUUM START"}
"""What maintenance commits without a row in it: after an OPTIMIZE it must not hide that."""

NO_ROWS = Fingerprint(0, ())


class DeltaCommitProver(DeltaVersionReader):
    """Implements ``CommitProver`` and ``VersionReader`` on a worker's session, whose settings it may change."""

    def __init__(
        self, jvm: DeltaJvm, live_files: LiveFilesReader | None = None, meter: StepMeter | None = None
    ) -> None:
        super().__init__(jvm, live_files or LiveFilesReader(jvm), meter)

    def proof(self, facts: TableFacts, version: int) -> Proof:
        """Prove a rewrite; see ``VersionReader.proof``."""
        started = time.monotonic()
        with self._commit(facts, version) as work:
            checks = tuple(work.checks_of_rows())
        if not (work.adds or work.removes):  # such as one of properties
            return Proof(NO_ROWS, NO_ROWS, rows_in_log=None, after_commit=True)
        if work.measured is None:
            reason = next((check.finding for check in checks if check.result is CheckResult.NOT_CHECKED), work.kind)
            raise CheckImpossible(
                "the rows of this commit cannot be compared",
                where=f"{facts.ref.identifier}@{version}",
                found=reason,
                help="each apply tries it again; if the table is right, `maintainer verify TABLE --accept REASON`",
            )
        wrong = [check for check in checks if check.result is CheckResult.WRONG]
        return Proof(
            work.measured.read,
            work.measured.written,
            rows_in_log=None,
            uncovered_columns=work.measured.uncovered_columns,
            duration_seconds=time.monotonic() - started,
            findings=tuple(f"{check.level}: {check.finding}" for check in wrong),
            after_commit=True,
        )

    def newest_maintenance(self, facts: TableFacts) -> int:
        """The newest version in which maintenance rewrote files; without one the newest of maintenance, then of all.

        Raises:
            TableError: T403, the log cannot be read.
        """
        self._jvm.activate()
        with table_errors(facts.ref.identifier):
            storage = TableStorage(self._jvm, facts.location)
            entries = storage.commits(after_version=max(-1, facts.version - MAX_COMMITS_LOOKED_AT))
            newest = None
            for entry, info in storage.infos(entries[::-1]):
                operation = str(info.get("operation") or "").upper()
                if operation in MAINTENANCE or CommitStamp.from_json(info.get("userMetadata")):
                    if operation not in _WITHOUT_ROWS:
                        return entry.version
                    newest = entry.version if newest is None else newest
            return facts.version if newest is None else newest

    def prove(self, facts: TableFacts, version: int, *, exact: bool = False) -> CommitVerification:
        """Prove one commit; see ``CommitProver.prove``."""
        started = time.monotonic()
        with self._commit(facts, version, exact=exact) as work:
            checks = tuple(work.checks())
        stamp = CommitStamp.from_json(work.info.get("userMetadata"))
        return CommitVerification(
            version=version,
            committed_at_ms=int(work.info.get("inCommitTimestamp") or work.info.get("timestamp") or 0),
            operation=str(work.info.get("operation") or "unknown operation"),
            engine=work.info.get("engineInfo"),
            run_id=None if stamp is None else stamp.run_id,
            kind=work.kind,
            checks=checks,
            num_files_removed=len(work.removes),
            num_files_added=len(work.adds),
            rows_removed=None if work.measured is None else work.measured.read.rows,
            rows_added=None if work.measured is None else work.measured.written.rows,
            uncovered_columns=() if work.measured is None else work.measured.uncovered_columns,
            duration_seconds=time.monotonic() - started,
        )

    @contextmanager
    def _commit(self, facts: TableFacts, version: int, *, exact: bool = False) -> Iterator[CommitWork]:
        self._jvm.activate()
        with table_errors(f"{facts.ref.identifier}@{version}"):
            storage = TableStorage(self._jvm, facts.location)
            entry = commit_at(storage, version)
            if entry is None:
                raise _no_such_version(facts, version)
            yield CommitWork(self._jvm, self, self._live_files, facts, storage, entry, exact)


def _no_such_version(facts: TableFacts, version: int) -> TableError:
    beyond = version > facts.version
    what = f"the log has no version {version}" + ("" if beyond else " any more")
    where, found = f"{facts.ref.identifier}@{version}", f"the newest version is {facts.version}"
    way_out = "name a version of `DESCRIBE HISTORY`" if beyond else "its commit was cleaned up and cannot be checked"
    return LogUnreadable(what, where=where, found=found, help=way_out)
