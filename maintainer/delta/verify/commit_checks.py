"""Check one commit that is already in the log: its actions, the rows it moved, its statistics, its files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.actions import live_rows, removed_key
from maintainer.delta.proof.proof_actions import (
    files_that_differ,
    readers_of_spelling,
    spelled_anew,
    zone_of_spelling,
)
from maintainer.delta.proof.row_comparison import FileSet, measure, measure_both, rows_that_differ
from maintainer.delta.proof.statistics_figures import Measured
from maintainer.delta.proof.statistics_verdict import judge, source_findings, strictness_of, wrong_sources
from maintainer.delta.rewrite.rewrite_proof import SHOWN
from maintainer.delta.spark.session_settings import PADS_CHAR, TIME_ZONE
from maintainer.delta.storage.failures.engine_failures import is_store_silent, message_of
from maintainer.delta.storage.table_log import LogEntry
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.commit_fate import REWRITE_ACTIONS
from maintainer.delta.transaction.live_files import AddAction, LiveFilesReader
from maintainer.delta.transaction.requirements import refuse_unsafe_reads
from maintainer.delta.verify.version_reader import SKIPS_FILES, DeltaVersionReader, same_rows
from maintainer.errors import EnvironmentUnfit, TableError
from maintainer.model.cached_property import cached_property
from maintainer.model.run.commit_verdict import CheckResult, CommitCheck
from maintainer.model.run.receipts import Fingerprint
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import FileKey, TableFacts
from maintainer.units import count_of, shortened

SAME_ROWS = "the rows removed are the rows added"
INPUTS_FIT = "before this commit, the log was right about the removed files"
SAME_TEXTS = "partition values are those of the removed files, letter for letter"
STATISTICS_FIT = "statistics fit the rows of the added files"
STATISTICS_EXACT = "a row reaches each bound of the added files"


@dataclass
class CommitWork:
    """One commit while it is checked. Checks run in order; a later one may need what an earlier one read."""

    jvm: DeltaJvm
    versions: DeltaVersionReader
    live_files: LiveFilesReader
    facts: TableFacts
    storage: TableStorage
    entry: LogEntry
    exact: bool
    info: dict[str, Any] = field(default_factory=dict)
    adds: list[dict[str, Any]] = field(default_factory=list)
    removes: list[dict[str, Any]] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    measured: Measured | None = None

    @cached_property
    def log(self) -> JavaObject:
        """Delta's own log of the table; opening it starts the session.

        Raises:
            EnvironmentUnfit: E606, the session would skip files that it cannot read.
        """
        conf = self.jvm.spark.conf
        refuse_unsafe_reads(lambda key: conf.get(key, None), self.facts.ref.identifier, SKIPS_FILES)
        return self.jvm.log_at(self.facts.location)

    @property
    def version(self) -> int:
        return self.entry.version

    @property
    def claims_no_change(self) -> bool:
        """Whether the commit has files and says of each that it changes no data."""
        files = [*self.adds, *self.removes]
        return bool(files) and not any(file.get("dataChange", True) for file in files)

    @property
    def kind(self) -> str:
        """What the commit claims to be."""
        if self.claims_no_change or self.info.get("operation") in ("OPTIMIZE", "REORG"):
            return "rewrite"
        return "data_change" if self.adds or self.removes else "other"

    def checks(self) -> Iterator[CommitCheck]:
        """Make every check that applies, in order."""
        yield from self.checks_of_rows()
        yield from self._files()

    def checks_of_rows(self) -> Iterator[CommitCheck]:
        """Read the commit, and check what it did with rows; nothing where it claims to change data, or has no files."""
        for action in self.storage.actions(self.entry, with_adds=True):
            (name,) = action
            if name == "commitInfo":
                self.info = action[name]
            elif name == "add":
                self.adds.append(action[name])
            elif name == "remove":
                self.removes.append(action[name])
            if name not in REWRITE_ACTIONS:
                self.others.append(name)
        if self.kind == "rewrite" and (self.adds or self.removes):
            yield from self._rewrite()

    def _rewrite(self) -> Iterator[CommitCheck]:
        """A commit that claims to change no data: actions, rows, statistics."""
        added = [removed_key(add) for add in self.adds]
        removed = [removed_key(remove) for remove in self.removes]
        live_before = self._live(self.version - 1)
        if isinstance(live_before, str):
            yield _unchecked("rows", SAME_ROWS, live_before)
            return
        yield _judged("actions", "the commit only moves rows between files", self._action_findings(live_before))
        if self.facts.partition_columns:
            yield self._partition_texts([live_before[key] for key in {*removed, *added} if key in live_before])
        live_after = self._live(self.version)
        if isinstance(live_after, str):
            yield _unchecked("rows", SAME_ROWS, live_after)
            return
        # Files whose rows the commit took away: removed, or added again with other metadata.
        sources = list(dict.fromkeys([*removed, *(key for key in added if key in live_before)]))
        strangers = [key for key in sources if key not in live_before] + [key for key in added if key not in live_after]
        if strangers:
            reason = f"{len(strangers)} of its files are not live where they must be, such as {strangers[0][0]}"
            yield _unchecked("rows", SAME_ROWS, reason)
            return
        missing = self._missing([key[0] for key in (*sources, *added)])
        if missing:
            reason = f"{len(missing)} of its files are not on storage any more, such as {missing[0]}"
            yield _unchecked("rows", SAME_ROWS, reason)
            yield _unchecked("statistics", STATISTICS_FIT, reason)
            return
        removed_files = tuple(live_before[key] for key in sources)
        yield from self._compare(removed_files, tuple(live_after[key] for key in added))

    def _action_findings(self, before: Collection[FileKey]) -> list[str]:
        problems = [
            f"{action['path']}: dataChange is true"
            for action in (*self.adds, *self.removes)
            if action.get("dataChange")
        ]
        problems += [f"it also has a {name} action" for name in sorted(set(self.others))]
        problems += files_that_differ(before, self.removes, self.adds, f"live at version {self.version - 1}")
        for add in self.adds:
            if not self.storage.is_below_root(self.storage.uri(str(add["path"]))):
                problems.append(f"{add['path']} lies outside the table's folder")
        return problems

    def _partition_texts(self, sources: Sequence[AddAction]) -> CommitCheck:
        """Texts of partition values: ours are kept; of others it is said what readers in other zones see now."""
        changed = spelled_anew(sources, self.adds)
        if not changed or CommitStamp.from_json(self.info.get("userMetadata")) is not None:
            return _judged("actions", SAME_TEXTS, changed)
        changed += [
            readers_of_spelling(sources, self.adds),
            f"RESTORE to version {self.version - 1} brings the texts back, and takes back every later change as well",
        ]
        return CommitCheck("partitions", SAME_TEXTS, CheckResult.SPELLED_ANEW, "\n".join(changed))

    def _compare(self, sources: tuple[AddAction, ...], written: tuple[AddAction, ...]) -> Iterator[CommitCheck]:
        name, problems, judged = SAME_ROWS, list[str](), self._with_statistics(sources)
        measured = None
        how = "counts and fingerprints" if not self.exact else "counts, fingerprints and every value"
        files = self.live_files.of_version(self.facts, self.version, looks=False)
        if not self.exact and "metaData" not in self.others:
            measured = same_rows(self.storage, files.metadata, judged, self.adds)
        if measured is None:
            before, after = self._snapshot(self.version - 1), self._snapshot(self.version)
            if isinstance(before, str) or isinstance(after, str):
                yield _unchecked("rows", name, before if isinstance(before, str) else str(after))
                return
            sides = FileSet(before, sources), FileSet(after, written)
            try:
                measured, problems = self._by_spark(*sides, judged)
                if problems and (zone := zone_of_spelling(sources, self.adds)) is not None:
                    with self.jvm.setting(TIME_ZONE, zone):
                        as_read, problems = self._by_spark(*sides, judged)
                    measured = replace(measured, read=as_read.read, written=as_read.written)
                    how += f", as readers in a time zone such as {zone} see them"
            except Exception as error:
                yield _unchecked("rows", name, message_of(error))
                return
        self.measured = measured
        yield _judged("rows", name, problems, f"{count_of(measured.read.rows, 'row')}, by {how}")
        yield from self._statistics(measured)
        yield self._inputs(judged, live_rows(sources), measured)

    def _with_statistics(self, sources: Sequence[AddAction]) -> tuple[AddAction, ...]:
        """The files that were removed with all of their statistics; without any, where these cannot be had."""
        texts: Mapping[str, str] = {}
        with suppress(Exception):  # the version cannot be read any more: nothing is known of them then
            paths = {str(source["path"]) for source in sources}
            texts = self.live_files.statistics_of(self.facts, self.version - 1, paths)
        return tuple({**source, "stats": texts.get(str(source["path"]))} for source in sources)

    def _by_spark(self, before: FileSet, after: FileSet, judged: Sequence[AddAction]) -> tuple[Measured, list[str]]:
        """Read both sides through Delta, first as they are stored, and say what is wrong with the rows."""
        with self.jvm.setting(PADS_CHAR, "false"):
            measured = measure_both(self.jvm, self.log, before, after, judged, self.adds)
        if measured.read != measured.written:
            # An OPTIMIZE of others pads the texts of CHAR columns, which no reader of Spark sees.
            as_read = measure(self.jvm, self.log, before, after, self.adds)
            measured = replace(measured, read=as_read.read, written=as_read.written)
        differing = rows_that_differ(self.jvm, self.log, before, after) if self.exact else 0
        return measured, row_problems(measured.read, measured.written, differing)

    def _statistics(self, measured: Measured) -> Iterator[CommitCheck]:
        """The statistics of the added files, by the one rule."""
        if self.adds and not any(add.get("stats") for add in self.adds):
            yield _unchecked("statistics", STATISTICS_FIT, "they have none")
            return
        strictness = strictness_of(self.info)
        judgements = [
            (add["path"], judge(add, measured.columns, figures, strictness))
            for add, figures in zip(self.adds, measured.files, strict=True)
        ]
        wrong = [f"{path}: {text}" for path, judgement in judgements for text in judgement.wrong]
        notes = [f"{path}: {text}" for path, judgement in judgements for text in judgement.notes]
        num_files = sum(bool(add.get("stats")) for add in self.adds)
        yield _judged("statistics", STATISTICS_FIT, wrong, count_of(num_files, "file"))
        if notes:
            yield CommitCheck("statistics", STATISTICS_EXACT, CheckResult.NOTED, shortened(notes, SHOWN))

    def _inputs(self, judged: Sequence[AddAction], in_log: int | None, measured: Measured) -> CommitCheck:
        """What the log said of the removed files: the commit found it so, and is right or wrong by itself."""
        rows = measured.read.rows
        problems = [] if in_log in (None, rows) else [f"the log says {in_log:,} rows, the files hold {rows:,}"]
        problems += wrong_sources(judged, measured)
        if in_log is None:
            problems.append("the log does not count their rows")
        left = source_findings(judged, measured).num_files_not_judged
        not_judged = f"; the statistics of {count_of(left, 'file')} were not looked at" if left else ""
        return CommitCheck(
            "inputs",
            INPUTS_FIT,
            CheckResult.NOTED if problems else CheckResult.PROVEN,
            (shortened(problems, SHOWN) if problems else count_of(in_log or 0, "row")) + not_judged,
        )

    def _files(self) -> Iterator[CommitCheck]:
        """Every file of the version is on storage; a file that was removed later may be gone."""
        name = f"every file of version {self.version} is on storage"
        try:
            missing = self.versions.missing_files(self.facts, self.version).paths
        except TableError as error:
            yield _unchecked("files", name, f"{error.what} [{error.code}]")
            return
        if not missing:
            yield CommitCheck("files", name, CheckResult.PROVEN)
            yield from self._readable()
            return
        newest = self.versions.missing_files(self.facts, self.facts.version).paths
        wrong = sorted(set(missing) & set(newest))
        if wrong:
            yield _judged("files", name, [f"{path} is gone, or has another size" for path in wrong])
        else:
            yield _unchecked(
                "files", name, f"{count_of(len(missing), 'file')} removed later, gone by now, such as {missing[0]}"
            )

    def _readable(self) -> Iterator[CommitCheck]:
        """The version's files can be read and hold the rows that the log says; a rewrite's were read already."""
        if self.measured is not None:
            return
        name = f"every file of version {self.version} can be read"
        in_log = self.versions.row_count(self.facts, self.version, scan=False)
        try:
            rows = self.versions.row_count(self.facts, self.version, scan=True)
        except EnvironmentUnfit:
            raise
        except Exception as error:
            yield _unchecked("files", name, message_of(error))
            return
        if in_log < 0:
            yield CommitCheck(
                "files", name, CheckResult.PROVEN, f"{count_of(rows, 'row')}; the log does not count them"
            )
        else:
            problems = [] if rows == in_log else [f"the log says {in_log:,} rows, the files hold {rows:,}"]
            yield _judged("files", name, problems, count_of(rows, "row"))

    def _live(self, version: int) -> Mapping[FileKey, AddAction] | str:
        """The live files of a version; or why nobody knows them."""
        if version < 0:
            return "there is no version before it"
        try:
            return self.live_files.of_version(self.facts, version).adds
        except Exception as error:
            if is_store_silent(error):
                raise
            return f"version {version} cannot be read any more: {message_of(error)}"

    def _snapshot(self, version: int) -> JavaObject | str:
        """Delta's own snapshot of a version, or why there is none."""
        log = self.log
        try:
            return self.jvm.snapshot_at(log, version)
        except Exception as error:
            return f"version {version} cannot be read any more: {message_of(error)}"

    def _missing(self, paths: Sequence[str]) -> list[str]:
        uris = {path: self.storage.uri(path) for path in paths}
        found = {uri for files, there in self.storage.by_store({*uris.values()}) for uri in files.look_many(there)}
        return [path for path, uri in uris.items() if uri not in found]


def row_problems(read: Fingerprint, added: Fingerprint, differing: int) -> list[str]:
    """Say what is wrong with the rows that a commit added, beside those that it removed; nothing where they are equal.

    ``differing`` rows are on one side only, where every value was compared.
    """
    problems = []
    if added.rows < read.rows:
        problems.append(f"{read.rows - added.rows:,} of {read.rows:,} rows are missing after this commit")
    elif added.rows > read.rows:
        problems.append(f"{count_of(added.rows - read.rows, 'new row')} after this commit, beside {read.rows:,}")
    elif read != added:
        problems.append(f"{read.rows:,} rows on both sides, and their fingerprints differ")
    if differing:
        problems.append(f"{count_of(differing, 'row')} on one side only")
    return problems


def _judged(level: str, name: str, problems: Sequence[str], figures: str | None = None) -> CommitCheck:
    if problems:
        return CommitCheck(level, name, CheckResult.WRONG, shortened(problems, SHOWN))
    return CommitCheck(level, name, CheckResult.PROVEN, figures)


def _unchecked(level: str, name: str, reason: str) -> CommitCheck:
    return CommitCheck(level, name, CheckResult.NOT_CHECKED, reason)
