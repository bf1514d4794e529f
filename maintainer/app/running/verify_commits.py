"""Verify past commits, record the results, and lift a quarantine when a person asks for it."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from maintainer.app.engine_access import ProvingWorker
from maintainer.app.project_folders import Project
from maintainer.app.running.acting_user import acting_user
from maintainer.engine.protocols import SignOfLife
from maintainer.engine.refusing_buckets import RefusingBuckets
from maintainer.errors import EnvironmentUnfit, MaintainerError, Refused
from maintainer.errors.foreign_text import visible_json
from maintainer.journal.folder.atomic_files import reading_runs
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_rows import LedgerRow
from maintainer.journal.memory.table_records import Remembered, remembered
from maintainer.model.codec import decode, encode
from maintainer.model.plan.plan import PLACES_FILE, Problem, as_problem
from maintainer.model.run.commit_verdict import (
    ACCEPTED,
    VERDICTS,
    CheckResult,
    CommitVerification,
    TableVerification,
    VerifyRun,
    lift_help,
)
from maintainer.model.run.history_rows import VERIFY
from maintainer.model.run.outcome import StepStatus, TableOutcome, TableStatus
from maintainer.model.run.progress import ProgressSink, RunStarted, TableFinished, Verified
from maintainer.model.table.table_facts import TableFacts, TableRecord, TableRef
from maintainer.policy.project.table_search import TableProblem
from maintainer.policy.table_names import name_key

FORMAT_VERSION = 1
VERIFICATION_FILE = "verification.json"
WRONG_CODE = "V507"
_EVENT_RESULT = {
    CheckResult.PROVEN: "pass",
    CheckResult.WRONG: "fail",
    CheckResult.NOT_CHECKED: "error",
    CheckResult.SPELLED_ANEW: CheckResult.SPELLED_ANEW.value,
}
_ROW_STATUS = {
    CheckResult.PROVEN: StepStatus.SUCCEEDED.value,
    CheckResult.WRONG: StepStatus.VERIFY_FAILED.value,
    CheckResult.NOT_CHECKED: "error",  # as the proof: it is no step's end
    CheckResult.SPELLED_ANEW: CheckResult.SPELLED_ANEW.value,  # it went through, and what it found is no step's end
}


@dataclass(frozen=True, slots=True)
class VerifyTarget:
    """A table, and the version to prove; None for the newest that maintenance made.

    ``is_ledger``: it is our own ledger, which is not counted among the user's tables.
    """

    ref: TableRef
    version: int | None = None
    is_ledger: bool = False


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """What to verify.

    Attributes:
        targets: The tables, in order.
        problems: Places that may be meant and could not be searched, and tables without a policy.
        exact: Compare every value of the rows, too.
        accept: Why a person accepts the table as it is: its quarantine is lifted, its unproven versions count as
            proven. None to accept nothing.
        on_table: Called with each answer as soon as it is there.
        away: Signs of life that tables wait for, by their identifiers.
    """

    targets: Sequence[VerifyTarget]
    problems: Sequence[TableProblem] = ()
    exact: bool = False
    accept: str | None = None
    on_table: Callable[[TableVerification], None] = lambda answer: None
    away: Mapping[str, SignOfLife] = field(default_factory=dict)


def parse_target(text: str, ref_of: Callable[[str], TableRef]) -> VerifyTarget:
    """Read ``TABLE`` or ``TABLE@VERSION``; an ``@`` without a number behind it belongs to the name."""
    name, at, version = text.rpartition("@")
    if at and name and version.isdecimal() and version.isascii():
        return VerifyTarget(ref_of(name), int(version))
    return VerifyTarget(ref_of(text))


def verify_tables(project: Project, worker: ProvingWorker, journal: Journal, request: VerifyRequest) -> VerifyRun:
    """Verify each table and record it in the run folder.

    Raises:
        Refused: A412, there is nothing to accept.
        FolderUnwritable: E651, what was found could not be recorded.
    """
    clock = journal.now_ms
    started_at_ms = clock()
    with reading_runs(project.runs_dir):
        records = remembered(project.runs_dir)
    answers = [
        TableVerification(place.table, problem=as_problem(place.error), is_place=place.file == PLACES_FILE)
        for place in request.problems
    ]
    for place in answers:
        request.on_table(place)
    verifying = _Verifying(request, worker, journal, records, RefusingBuckets(request.away))
    for target in request.targets:
        answer = verifying.table(target)
        answers.append(answer)
        request.on_table(answer)
    run = VerifyRun(journal.run_id, started_at_ms, (clock() - started_at_ms) / 1000, tuple(answers))
    journal.folder.write_document(VERIFICATION_FILE, verification_document(run))
    journal.finished()
    journal.close()
    # Where it cannot be written, the next command reads the run folders themselves.
    with contextlib.suppress(OSError, EnvironmentUnfit):
        journal.update_state()
    return run


def quarantine_events(
    project: Project, journal: Journal, request: VerifyRequest, sink: ProgressSink | None
) -> VerifyRequest:
    """Return the request with an event for each table that goes into quarantine, as a run sends it.

    A table that was in quarantine before sends none, nor one that a person accepts.
    """
    if sink is None or request.accept is not None:
        return request
    sink(RunStarted(journal.now_ms(), journal.run_id, len(request.targets), 0, 1, str(journal.folder.path)))
    policies = {name_key(policy.table): policy for policy in project.policies}

    def on_table(answer: TableVerification) -> None:
        commit = answer.commit
        if commit is not None and commit.content_is_wrong and answer.quarantined is None:
            policy = policies.get(name_key(answer.ref))
            at = f"{answer.ref.identifier}@{commit.version}"
            problem = Problem(WRONG_CODE, wrong_text(commit), at, lift_help(shlex.quote(at)))
            outcome = TableOutcome(
                answer.ref,
                TableStatus.VERIFY_FAILED,
                problem=problem,
                policy_file=policy.file if policy else "",
                owner=policy.owner if policy else None,
            )
            sink(TableFinished(journal.now_ms(), outcome))
        request.on_table(answer)

    return replace(request, on_table=on_table)


def wrong_text(commit: CommitVerification) -> str:
    """Say that a version is wrong, and what is: for the quarantine's reason, and for whoever is notified."""
    wrong = commit.worst(CheckResult.WRONG)
    check_text = "" if wrong is None else f": {wrong.finding}"
    return f"version {commit.version} was verified and is wrong{check_text}"


@dataclass(frozen=True, slots=True)
class _Verifying:
    """Verifies one table after the other and keeps what was found of each in the run folder."""

    request: VerifyRequest
    worker: ProvingWorker
    journal: Journal
    records: Remembered
    buckets: RefusingBuckets

    def table(self, target: VerifyTarget) -> TableVerification:
        accept, prover = self.request.accept, self.worker.prover
        try:
            facts = self.buckets.facts(self.worker.reader, target.ref)
            version = target.version if target.version is not None else prover.newest_maintenance(facts)
            commit = prover.prove(facts, version, exact=self.request.exact)
        except MaintainerError as error:
            if accept is not None:
                raise
            self.journal.note("not_verified", table=target.ref.identifier, code=error.code, what=error.what)
            return TableVerification(target.ref, problem=as_problem(error), is_ledger=target.is_ledger)
        record = self.records.record_of(facts.table_id, facts.location, self.worker.places)
        quarantine_id = self._record(facts, commit)
        answer = TableVerification(
            target.ref,
            commit,
            quarantined=record.quarantined,
            table_id=facts.table_id,
            location=facts.location,
            is_ledger=target.is_ledger,
        )
        if accept is not None:
            if quarantine_id is not None:  # what was just found is accepted, too, by a person who knew that it is wrong
                _refuse_unseen(record, commit, target)
                record = replace(record, quarantines=(*record.quarantines, (quarantine_id, commit.version)))
            return self._accept(facts, record, answer, accept)
        proven_now = {version} if commit.result is CheckResult.PROVEN else set()
        unverified = [str(number) for number in record.unproven_versions if number not in proven_now]
        notes = [f"not proven yet: version {', '.join(unverified)}"] if unverified else []
        if commit.result is CheckResult.FILES_ONLY and target.version is None:
            notes.append("no rewrite among the newest commits")
        return replace(answer, note="; ".join(notes)) if notes else answer

    def _record(self, facts: TableFacts, commit: CommitVerification) -> str | None:
        """Durably record the verdict: a proven version allows deletions, a wrong one quarantines the table.

        Returns:
            The id of the quarantine; None where there is none.
        """
        if commit.kind == "rewrite":
            finding = None if commit.result is CheckResult.PROVEN else commit.worst(commit.result)
            detail = None if finding is None else f"{finding.name}: {finding.finding}"
            result, seconds = _EVENT_RESULT[commit.result], commit.duration_seconds
            about = Verified(self.journal.now_ms(), facts.ref.identifier, "verify", result, seconds, detail=detail)
            about = replace(about, version=commit.version, table_id=facts.table_id, location=facts.location)
            if commit.result is CheckResult.PROVEN:
                self.journal.counts_as_proven(about, commit.version)
            else:
                self.journal.record(about)
        if not commit.content_is_wrong:
            return None
        return self.journal.quarantine(facts, f"{WRONG_CODE}: {wrong_text(commit)}", commit.version)

    def _accept(
        self, facts: TableFacts, record: TableRecord, answer: TableVerification, reason: str
    ) -> TableVerification:
        """Record that a person accepts the table.

        Raises:
            Refused: A412.
        """
        if record.quarantined is None and not record.unproven_versions:
            what = "there is nothing to accept: the table is not in quarantine, and no rewrite of it is unproven"
            help = "run `maintainer verify` without --accept to look at it"
            raise Refused(what, code="A412", where=facts.ref.identifier, help=help)
        self.journal.accept(facts, record, reason=reason, by=acting_user())
        listed = ", ".join(map(str, record.unproven_versions))
        notes = [f"the quarantine is lifted ({record.quarantined})"] if record.quarantined else []
        notes += [f"version {listed} counts as proven"] if listed else []
        return replace(answer, quarantined=None, note=ACCEPTED + "; ".join(notes))


def _refuse_unseen(record: TableRecord, commit: CommitVerification, target: VerifyTarget) -> None:
    """Refuse to accept what nobody can have seen: no check before this one called the version wrong.

    Raises:
        Refused: A411.
    """
    wrong = commit.worst(CheckResult.WRONG)
    if commit.version not in {version for _, version in record.quarantines}:
        what = "this check is the first to find the version wrong: it is recorded, and nothing was accepted"
        found = None if wrong is None else f"version {commit.version}: {wrong.name}: {wrong.finding}"
        help = "look at the table; the same command accepts it after that"
        raise Refused(what, code="A411", where=target.ref.identifier, found=found, help=help)


def verification_document(run: VerifyRun) -> dict[str, Any]:
    """Return the JSON document of a verification, with the tables counted."""
    tables = []
    for table_run in run.tables:
        table = {**encode(table_run), "result": table_run.result.value}
        if table_run.commit is not None:
            table["commit"] = {**table["commit"], "result": table_run.commit.result.value}
        tables.append(table)
    return {
        "format_version": FORMAT_VERSION,
        **encode(replace(run, tables=())),
        "tables": tables,
        "counts": {result.value: run.count(result) for result in VERDICTS},
    }


def verification_json(run: VerifyRun) -> str:
    """Return the verification as JSON text, ending in a newline."""
    text = json.dumps(verification_document(run), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return visible_json(text) + "\n"


def verification_from_json(text: str) -> VerifyRun:
    """Read the document of a verification back; what is counted in it is counted anew.

    Raises:
        ValueError: It is something else.
    """
    return decode(VerifyRun, json.loads(text), ignore_unknown=True)


def verification_rows(text: str) -> Iterator[LedgerRow]:
    """Yield what the record of a verification says of each commit, the last first.

    A commit that changes data has a row only where something was found: no rows of it were compared.

    Raises:
        ValueError: It is something else.
    """
    run = verification_from_json(text)
    for table in reversed(run.tables):
        commit = table.commit
        if commit is not None and commit.result is not CheckResult.FILES_ONLY:
            yield _row(run, table, commit)


def _row(run: VerifyRun, table: TableVerification, commit: CommitVerification) -> LedgerRow:
    proven, wrong = commit.result is CheckResult.PROVEN, commit.result is CheckResult.WRONG
    finding = None if proven else commit.worst(commit.result)
    detail = None if finding is None else finding.finding
    said = (detail, None if proven else table.note)
    name = table.ref.identifier
    return LedgerRow(
        run_id=run.run_id,
        table=name,
        table_id=table.table_id,
        location=table.location,
        step_id=f"{name}/{VERIFY}",
        kind=VERIFY,
        status=_ROW_STATUS[commit.result],
        reason=f"{commit.operation} by {commit.who}",
        version_after=commit.version,
        started_at_ms=run.started_at_ms,
        duration_seconds=commit.duration_seconds,
        proof_result=_EVENT_RESULT[commit.result],
        error_code=WRONG_CODE if wrong else None,
        error="; ".join(filter(None, said)) or None,
    )
