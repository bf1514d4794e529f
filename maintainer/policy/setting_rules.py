"""Find settings that do not go together: sizes, deletion that comes too early, lists with contradictions, properties.

Each rule is written once, on values in base units. `policy_checks` runs all of them on every file by itself and on
the merged values of every table.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from maintainer.model.run.auto_compaction import AUTO_COMPACT, OWN_PREFIX, OWN_PROPERTIES
from maintainer.policy.diagnostics import Severity, did_you_mean, nearest
from maintainer.policy.predicate.predicate_grammar import read_timestamp
from maintainer.policy.property_names import (
    DELTA,
    KNOWN_PROPERTIES,
    PropertyKind,
    kind_of,
    parse_interval_ms,
    refused_value,
)
from maintainer.policy.schema.known_expectations import EXPECTATIONS, NOT_FOR_POLICIES, argument_problems
from maintainer.policy.schema.schema_keys import shown
from maintainer.policy.yaml.yaml_document import Path
from maintainer.units import UnitError, format_duration, format_size, parse_duration

SAFE_SECONDS = 7 * 86_400
"""Delta's own check, 168 hours: a reader or writer that is still at work may need files for so long."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings by dotted key in base units (bytes, seconds), and the dotted keys of the maps that were written.

    What was malformed is not in ``values``: it was reported before. Items of lists may still be anything.
    """

    values: Mapping[str, object]
    maps: Container[str]

    def number(self, key: str) -> int | None:
        """Return a size, duration or number, None where it is not set."""
        value = self.values.get(key)
        return value if type(value) is int else None

    def items(self, key: str) -> list[tuple[int, Any]]:
        """Return the items of a list with their positions, none where it is not set."""
        value = self.values.get(key)
        return list(enumerate(value)) if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class SettingFinding:
    """Something wrong with the setting at ``path``; ``other`` is the setting that it does not go with.

    ``across`` says the same without "this key": the two may come from different files. None where the rule is about
    one file only.
    """

    code: str
    path: Path
    message: str
    help: str
    other: Path | None = None
    severity: Severity = Severity.ERROR
    at_key: bool = False
    across: str | None = None


_MANAGED = {
    name: f"write `autoCompact: {{{name.removeprefix(OWN_PREFIX)}: ...}}` at the top level" for name in OWN_PROPERTIES
} | {AUTO_COMPACT: "write `autoCompact:` at the top level"}
_PROTOCOL = ("delta.minReaderVersion", "delta.minWriterVersion", "delta.feature.")
DELETED_FILES, LOG_RETENTION = "delta.deletedfileretentionduration", "delta.logretentionduration"
_LOST_AT_ZERO = {
    DELETED_FILES: "any VACUUM deletes files that a reader or a writer still uses",
    LOG_RETENTION: "versions are forgotten at the next checkpoint, also those that a reader still needs",
    "delta.settransactionretentionduration": "a stream that starts again may write its last batch a second time",
}
"""Intervals by their name in lower case, for Delta's names have no case: what is lost if one is 0."""


def check_properties(settings: Settings) -> Iterator[SettingFinding]:
    """Yield properties that a policy must not hold, and intervals that are too short or not written Delta's way."""
    short_is_meant = settings.values.get("vacuum.allowShortRetention") is True
    for key, value in settings.values.items():
        if not key.startswith("properties."):
            continue
        name = key.removeprefix("properties.")
        path = ("properties", name)
        if name in _MANAGED:
            yield SettingFinding("P315", path, "is managed by another key", _MANAGED[name], at_key=True)
        elif name.startswith(_PROTOCOL):
            message = "changes the table's protocol, which cannot be undone"
            yield SettingFinding(
                "P315", path, message, "change it by hand, once, with all readers in mind", at_key=True
            )
        elif (kind := kind_of(name)) is None:
            near = nearest(name[len(DELTA) :], (known[len(DELTA) :] for known in KNOWN_PROPERTIES))
            help = did_you_mean(name, DELTA + near) if near else f"a property of your own cannot begin with `{DELTA}`"
            yield SettingFinding("P321", path, "is not a table property of Delta", help, at_key=True)
        elif kind is PropertyKind.INTERVAL:
            yield from _check_interval(path, name.lower(), value, short_is_meant=short_is_meant)
        elif (allowed := refused_value(name, str(value))) is not None:
            yield SettingFinding("P318", path, f"must be {allowed}, not {shown(value)}", f"write {allowed}")


def _check_interval(path: Path, name: str, value: object, *, short_is_meant: bool) -> Iterator[SettingFinding]:
    """Delta reads ``interval 30 days`` (or ``30 days``), and neither ``30d`` nor ISO 8601. Short ones lose files."""
    text = str(value)
    words = text if text.lower().startswith("interval ") else f"interval {text}"
    try:
        seconds = parse_duration(words)
    except UnitError as error:
        try:
            help = f"write `{_interval(parse_duration(text))}`"
        except UnitError:
            help = "write it like `interval 30 days`"
        message = "months and years have no fixed length" if "month" in str(error) else "is not an interval of Delta"
        yield SettingFinding("P318", path, message, help)
        return
    if seconds == 0 and name in _LOST_AT_ZERO:
        yield SettingFinding("P320", path, f"is 0: {_LOST_AT_ZERO[name]}", "write at least `interval 7 days`")
    elif name == DELETED_FILES and seconds < SAFE_SECONDS and not short_is_meant:
        message = f"{format_duration(seconds)} is below 7d: a VACUUM by others may take files that are still used"
        help = "write at least `interval 7 days`, or `vacuum: {allowShortRetention: true}` if it is meant"
        yield SettingFinding("P320", path, message, help, severity=Severity.WARNING)


def _retentions(settings: Settings) -> Iterator[SettingFinding]:
    """Warn of properties that keep less than the policy's vacuum needs, or Delta asks for: `plan` refuses both."""
    written = {key.lower(): key for key in settings.values if key.startswith("properties.")}
    longest, other = (settings.number("vacuum.retention") or 0) * 1000, ("vacuum", "retention")
    for name in (DELETED_FILES, LOG_RETENTION):
        key = written.get(f"properties.{name}", "")
        if (kept_ms := parse_interval_ms(str(settings.values.get(key)))) is None:
            continue
        path = ("properties", key.removeprefix("properties."))
        if kept_ms < longest:
            message = f"is shorter than {'.'.join(other)}, {format_duration(longest // 1000)}: `plan` refuses the table"
            help, across = "make it at least as long, or remove it", f"{key} {message}"
            yield SettingFinding("P307", path, message, help, other, Severity.WARNING, across=across)
        else:
            longest, other = kept_ms, path


def _interval(seconds: int) -> str:
    """Write a duration as Delta's interval: ``interval 1 day 12 hours``."""
    parts = ((part[:-1], _UNITS[part[-1]]) for part in format_duration(seconds).split())
    return "interval " + " ".join(f"{count} {unit}{'' if count == '1' else 's'}" for count, unit in parts)


_UNITS = {"d": "day", "h": "hour", "m": "minute", "s": "second"}

LARGEST_FILE_BYTES = 1 << 40
"""One task writes a file alone; a terabyte is already far beyond what it can."""

MANY_ZORDER_COLUMNS = 4
"""From the fifth column on the curve has hardly a bit left for each; files are skipped for none of them."""


def check_settings(settings: Settings) -> Iterator[SettingFinding]:
    """Yield what every rule says against these settings."""
    for rule in (
        _file_sizes,
        _zorder,
        _rewrite,
        _cluster,
        _vacuum,
        check_properties,
        _retentions,
        _consumers,
        _windows,
        _expectations,
    ):
        yield from rule(settings)


def _same_column(names: list[tuple[int, Any]], code: str, path: Path) -> Iterator[SettingFinding]:
    """Yield columns that are the same but for case; exactly the same name twice is a finding of the schema."""
    first: dict[str, str] = {}
    for position, name in names:
        if isinstance(name, str) and first.setdefault(name.casefold(), name) != name:
            message = f"is the same column as `{first[name.casefold()]}`: Delta's names have no case"
            yield SettingFinding(code, (*path, position), message, "remove one of the two")


def _file_sizes(settings: Settings) -> Iterator[SettingFinding]:
    """Check sizes: a file that a rewrite wrote may be somewhat smaller than maxFileSize, and not count as small."""
    for section in ("optimize", "autoCompact"):
        smallest, largest = settings.number(f"{section}.minFileSize"), settings.number(f"{section}.maxFileSize")
        if smallest is None or not largest:
            continue
        severity, code = Severity.ERROR, "P302"
        message = "is larger than maxFileSize: compacted files would count as small again"
        if smallest <= largest:
            severity, code = Severity.WARNING, "P303"
            message = "is more than 3/4 of maxFileSize: compacted files may count as small again"
        if smallest * 4 > largest * 3:
            path, other = (section, "minFileSize"), (section, "maxFileSize")
            least, most = -(-smallest * 4 // 3 >> 20), largest * 3 // 4 >> 20
            help = f"set maxFileSize to at least {least}MiB" + (
                f", or minFileSize to at most {most}MiB" if most else ""
            )
            across = f"minFileSize {message}"
            yield SettingFinding(code, path, message, help, other, severity, across=across)
    largest = settings.number("optimize.maxFileSize")
    if largest is not None and largest > LARGEST_FILE_BYTES:
        message = f"is larger than {format_size(LARGEST_FILE_BYTES)}"
        yield SettingFinding("P307", ("optimize", "maxFileSize"), message, "write a size like `256MiB`")
    batch = settings.number("optimize.batchSize")
    if batch and largest is not None and batch < largest:
        message = "is smaller than maxFileSize, so each bin becomes a separate commit"
        help = "make batchSize a multiple of maxFileSize"
        other = ("optimize", "maxFileSize")
        yield SettingFinding("P307", ("optimize", "batchSize"), message, help, other, Severity.WARNING)


def _zorder(settings: Settings) -> Iterator[SettingFinding]:
    path = ("optimize", "zorder", "columns")
    columns = settings.items("optimize.zorder.columns")
    yield from _same_column(columns, "P306", path)
    since = settings.values.get("optimize.zorder.fromTimestamp")
    if isinstance(since, str) and read_timestamp(since) is None:
        message = "is not a time that exists"
        yield SettingFinding("P306", (*path[:2], "fromTimestamp"), message, "write it like `2026-01-01 00:00:00`")
    count = len({name.casefold() for _, name in columns if isinstance(name, str)})
    if count > MANY_ZORDER_COLUMNS:
        message = f"{count} columns; each one more makes all of them skip fewer files"
        help = f"keep the {MANY_ZORDER_COLUMNS} that queries filter on most"
        yield SettingFinding("P306", path, message, help, severity=Severity.WARNING, at_key=True)


def _rewrite(settings: Settings) -> Iterator[SettingFinding]:
    """Check a rewrite: it asks for something, for a number or a size, and not for an order beside a Z-order."""
    if "optimize.rewrite" not in settings.maps:
        return
    path: Path = ("optimize", "rewrite")
    written = [key for key in ("files", "fileSize", "sortBy") if settings.values.get(f"optimize.rewrite.{key}")]
    if not any(f"optimize.rewrite.{key}" in settings.values for key in ("files", "fileSize", "sortBy")):
        help = "add `files`, `fileSize` or `sortBy`, or remove it"
        yield SettingFinding("P319", path, "asks for nothing", help, at_key=True)
    if "files" in written and "fileSize" in written:
        message = "`files` and `fileSize` cannot both be set"
        other = (*path, "fileSize")
        yield SettingFinding("P319", (*path, "files"), message, "remove one of the two", other, across=message)
    if written and settings.values.get("optimize.zorder.columns"):
        message, other = "a partition cannot be in Z-order and as `rewrite` asks", ("optimize", "zorder", "columns")
        yield SettingFinding("P319", path, message, "remove one of the two", other, at_key=True, across=message)
    yield from _same_column(settings.items("optimize.rewrite.sortBy"), "P319", (*path, "sortBy"))


def _cluster(settings: Settings) -> Iterator[SettingFinding]:
    least, target = (settings.number(f"optimize.cluster.{key}") for key in ("minCubeSize", "targetCubeSize"))
    if least and target and 2 * target < 3 * least:
        path, other = ("optimize", "cluster", "targetCubeSize"), ("optimize", "cluster", "minCubeSize")
        message = "is smaller than 1.5 times minCubeSize, which counts then"
        yield SettingFinding("P307", path, message, "make it larger, or leave it out", other, Severity.WARNING)


def _vacuum(settings: Settings) -> Iterator[SettingFinding]:
    if settings.values.get("vacuum.deleteUntracked") is True and settings.values.get("vacuum.mode") == "lite":
        message = "is never done in mode lite, which does not list the folder"
        help, across = "write `mode: auto`, or `deleteUntracked: false`", f"deleteUntracked {message}"
        yield SettingFinding("P307", ("vacuum", "deleteUntracked"), message, help, ("vacuum", "mode"), across=across)
    retention, untracked = settings.number("vacuum.retention"), settings.number("vacuum.untrackedAge")
    shortest = SAFE_SECONDS if retention is None else retention
    if untracked is not None and untracked < shortest:
        message = f"{format_duration(untracked)} is shorter than the retention of {format_duration(shortest)}"
        help = f"write at least `{format_duration(shortest)}`; a writer's own files are untracked until it commits"
        yield SettingFinding("P307", ("vacuum", "untrackedAge"), message, help)
    if retention is None:
        return
    path, allowed = ("vacuum", "retention"), settings.values.get("vacuum.allowShortRetention")
    if retention == 0:
        message = "must be longer than 0: a reader or writer loses files at the very moment that they are replaced"
        meant = "the time of the longest query or write, such as `2h`"
        help = f"write at least {meant}"
        if allowed is not True:
            help = f"write at least `7d`; with `allowShortRetention: true` beside it, at least {meant}"
        yield SettingFinding("P304", path, message, help)
    elif retention < SAFE_SECONDS and allowed is not True:
        other = ("vacuum", "allowShortRetention") if allowed is False else None
        message = f"{format_duration(retention)} is below 7d: files that a reader or writer still uses could be deleted"
        help = "if it is meant, write `allowShortRetention: true` beside it"
        yield SettingFinding("P304", path, message, help, other, across=f"retention {message}")
    for position, consumer in settings.items("consumers"):
        lag = consumer.get("maxLag") if isinstance(consumer, dict) else None
        if type(lag) is int and lag > retention:
            message = f"{format_duration(retention)} is shorter than a consumer's lag of {format_duration(lag)}"
            across = f"retention is shorter than the lag of `{consumer.get('name')}`, {format_duration(lag)}"
            help = f"make the retention at least `{format_duration(lag)}`"
            yield SettingFinding("P305", path, message, help, ("consumers", position, "maxLag"), across=across)


def _consumers(settings: Settings) -> Iterator[SettingFinding]:
    names: dict[str, int] = {}
    for position, consumer in settings.items("consumers"):
        if not isinstance(consumer, dict):
            continue
        if consumer.get("maxLag") is None and consumer.get("checkpoint") is None:
            message = "says nothing about what vacuum must keep"
            yield SettingFinding("P317", ("consumers", position), message, "add `maxLag: 3d`, how far behind it may be")
        name = consumer.get("name")
        if isinstance(name, str) and (first := names.setdefault(name, position)) != position:
            message, other = f"a second consumer named `{name[:60]}`", ("consumers", first, "name")
            yield SettingFinding("P207", ("consumers", position, "name"), message, "give each its own name", other)


_WHOLE_DAY = "[{from: 00:00, to: 12:00}, {from: 12:00, to: 00:00}]"


def _windows(settings: Settings) -> Iterator[SettingFinding]:
    for position, window in settings.items("window"):
        if isinstance(window, dict) and window.get("from") is not None and window["from"] == window.get("to"):
            path: Path = ("window", position)
            help = f"change one of the two; a whole day is two windows, `{_WHOLE_DAY}`, each with its `days`"
            yield SettingFinding("P308", (*path, "to"), "the window closes when it opens", help, (*path, "from"))


def _expectations(settings: Settings) -> Iterator[SettingFinding]:
    """Check arguments: those that an expectation does not have, must not have here, or lacks."""
    for position, expectation in settings.items("verify.expectations"):
        name = expectation.get("type") if isinstance(expectation, dict) else None
        if not isinstance(name, str) or name not in EXPECTATIONS:
            continue
        path = ("verify", "expectations", position)
        if isinstance(expectation.get("kwargs"), dict):  # as suites of Great Expectations are stored
            message = "holds arguments, which stand beside `type` in a policy"
            help = "remove `kwargs:` and write what is below it beside `type`"
            yield SettingFinding("P316", (*path, "kwargs"), message, help, at_key=True)
            continue
        arguments = EXPECTATIONS[name]
        known = (*arguments.required, *arguments.optional)
        for key in expectation:
            if key in NOT_FOR_POLICIES and key not in known:
                help = "remove it; it changes how results are reported, or is text that the engine would run"
                yield SettingFinding("P316", (*path, key), "cannot be set in a policy", help, at_key=True)
            elif key != "type" and key not in known:
                near = nearest(key, known)
                help = did_you_mean(key, near) if near else f"it takes {', '.join(known) or 'no argument'}"
                yield SettingFinding("P316", (*path, key), f"is not an argument of `{name}`", help, at_key=True)
        missing = [key for key in arguments.required if key not in expectation]
        if missing:
            needs = " and ".join(f"`{key}`" for key in missing)
            yield SettingFinding("P316", (*path, "type"), f"needs {needs}", f"add `{missing[0]}:`")
        given = {key: value for key, value in expectation.items() if key in known}
        for argument, message, help in argument_problems(name, given):
            yield SettingFinding("P316", (*path, argument), message, help)
        mostly = expectation.get("mostly")
        if "mostly" in known and mostly is not None and not (type(mostly) in (int, float) and 0 <= mostly <= 1):
            yield SettingFinding("P316", (*path, "mostly"), "must be a number from 0 to 1", "write it like `0.99`")
