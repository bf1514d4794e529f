"""Turn exceptions of Spark, Delta and Java into our own errors, by error class and JVM class.

Three kinds arrive: py4j's ``Py4JJavaError``, PySpark's captured exceptions (both carry the Java throwable), and the
Python classes of ``delta.exceptions``, which carry text only. ``describe`` flattens any of them, with causes, into
plain values; everything after that is pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from maintainer.delta.jvm import JavaObject
from maintainer.delta.storage.failures.machine_failures import (
    UNREACHABLE,
    damaged_file_error,
    failing_disk,
    is_missing,
    missing_file_error,
    storage_error,
)
from maintainer.delta.storage.failures.store_answers import Failure
from maintainer.engine.process_loss import engine_gone, is_engine_lost, says_stopped
from maintainer.errors import (
    CatalogAway,
    CommitNotLanded,
    FileAbsent,
    Interrupted,
    LogUnreadable,
    MaintainerError,
    NoTable,
    NotDelta,
    StoreSilent,
    TableError,
    raise_from,
)
from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.model.table.table_features import NOT_PERMITTED, NOT_PERMITTED_HELP

MAX_CAUSES = 12

CONFLICT_CLASSES = frozenset(
    {
        "DeltaConcurrentModificationException",
        "ConcurrentWriteException",
        "MetadataChangedException",
        "ProtocolChangedException",
        "ConcurrentAppendException",
        "ConcurrentDeleteReadException",
        "ConcurrentDeleteDeleteException",
        "ConcurrentTransactionException",
        "ConcurrentModificationException",
    }
)
_CONFLICT_CONDITIONS = frozenset({"DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED"})
"""Over Spark Connect there are no classes, only conditions."""
_CANCELLED = frozenset({"SPARK_JOB_CANCELLED", "OPERATION_CANCELED"})
_NOT_A_TABLE = frozenset({"DELTA_MISSING_DELTA_TABLE", "DELTA_ONLY_OPERATION", "DELTA_TABLE_ONLY_OPERATION"})
_NO_SUCH = frozenset(
    {
        "DELTA_PATH_DOES_NOT_EXIST",
        "PATH_NOT_FOUND",
        "DELTA_TABLE_NOT_FOUND",
        "TABLE_OR_VIEW_NOT_FOUND",
        "SCHEMA_NOT_FOUND",
        "NO_SUCH_CATALOG_EXCEPTION",
    }
)
_OF_CATALOG = re.compile(
    r"DELTA_(PATH_BASED_ACCESS_TO|UNSUPPORTED)_CATALOG_MANAGED|Path based access is not supported for Catalog-Owned"
)
_FEATURE_OF_CATALOG = re.compile(r"\bcatalog(?:Managed|Owned)")
_UNKNOWN_FEATURE = re.compile(r"DELTA_(UNSUPPORTED_FEATURES|INVALID_PROTOCOL|FEATURES_PROTOCOL)")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+")
NO_TABLE_HELP = "correct `table:` in its policy; if the table was dropped for good, remove its policy"
NOT_COMMITTED_HELP = (
    "fix the cause named above, then run `maintainer apply` again; spark.log in the run folder has the details"
)
DAMAGED_LOG_HELP = f"nothing was changed; compare the {LOG_FOLDER} folder with a backup"
UNKNOWN_CAUSE_HELP = "nothing was changed; fix the cause named above; spark.log in the run folder has the details"
NOT_DELTA_HELP = (
    "correct `table:`, or remove it from the policies; CONVERT TO DELTA is for folders of plain Parquet files only: "
    f"where a table of Delta lost its {LOG_FOLDER}, it would bring deleted rows back"
)


def describe(error: BaseException) -> tuple[Failure, ...]:
    """The exception and its causes, outermost first, at most ``MAX_CAUSES``; asks the JVM, so it may be slow."""
    throwable = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    failures: list[Failure] = []
    if throwable is None:
        text = str(getattr(error, "_desc", None) or error)
        failures.append(Failure(type(error).__name__, _condition_in(text), _first_lines(text)))
        cause = getattr(error, "_cause", None) or error.__cause__
        return (*failures, *describe(cause)) if cause is not None and cause is not error else tuple(failures)
    while throwable is not None and len(failures) < MAX_CAUSES:
        failures.append(_of_throwable(throwable))
        throwable = throwable.getCause()
    return tuple(failures)


def _of_throwable(throwable: JavaObject) -> Failure:
    name = str(throwable.getClass().getName()).rpartition(".")[2].rpartition("$")[2]
    message = str(throwable.getMessage() or "")
    return Failure(name, _condition_in(message), _first_lines(message))


def _condition_in(text: str) -> str:
    match = re.match(r"\s*(?:[\w.$]+: )?\[([A-Z][A-Z0-9_]*)", text)
    return match.group(1) if match else ""


def _first_lines(text: str, limit: int = 600) -> str:
    head = text.split("\nJVM stacktrace:")[0].split("\n\tat ")[0].strip()
    return head if len(head) <= limit else head[: limit - 1] + "…"


def is_conflict(chain: tuple[Failure, ...]) -> bool:
    """Whether Delta says that another writer's commit stands in the way (or our transaction's view is old)."""
    return any(
        failure.type_name in CONFLICT_CLASSES
        or failure.condition in _CONFLICT_CONDITIONS
        or failure.condition.startswith("DELTA_CONCURRENT_")
        for failure in chain
    )


def is_unanswered(chain: tuple[Failure, ...]) -> bool:
    """Whether storage elsewhere did not say what became of a write: then it may be done, or still be under way.

    Its client tries again by itself and tells of the last try alone.
    """
    return any(failure.type_name == "UnansweredCommit" or failure.type_name in UNREACHABLE for failure in chain)


def is_cancelled(chain: tuple[Failure, ...]) -> bool:
    """Whether the work was cancelled, by us or by another user."""
    return any(failure.condition in _CANCELLED for failure in chain)


def is_stopped(chain: tuple[Failure, ...]) -> bool:
    """Whether Spark has ended under us; its JVM may live a little longer, as after a signal."""
    return any(says_stopped(failure.message) for failure in chain)


@contextmanager
def table_errors(where: str) -> Iterator[None]:
    """Raise exceptions of the block as errors of our own; see ``as_table_error``."""
    try:
        yield
    except Exception as error:
        raise_from(as_table_error(error, where), error)


def _chain_or_error(error: BaseException, where: str, cancelled: str) -> tuple[Failure, ...] | MaintainerError:
    """Describe an exception; return our error instead if it is one, the engine is gone or the work was cancelled."""
    if isinstance(error, MaintainerError):
        return error
    if is_engine_lost(error):  # then the JVM cannot describe it
        return engine_gone(where)
    chain = describe(error)
    if is_stopped(chain):
        return engine_gone(where)
    if is_cancelled(chain):
        return Interrupted(cancelled, where=where, help="run `maintainer apply` again")
    return chain


def no_table(what: str, where: str, found: str | None = None) -> NoTable:
    """Return T401 with what helps."""
    return NoTable(what, where=where, found=found, help=NO_TABLE_HELP)


def not_delta(what: str, where: str, found: str, allowed: str | None = "a table with provider delta") -> NotDelta:
    """Return T402 with what helps."""
    return NotDelta(what, where=where, found=found, allowed=allowed, help=NOT_DELTA_HELP)


def not_permitted(where: str, found: str) -> TableError:
    """Return T407: the catalog maintains the table itself."""
    return TableError(NOT_PERMITTED, code="T407", where=where, found=found, help=NOT_PERMITTED_HELP)


def log_unreadable(what: str, where: str, found: str, help: str = DAMAGED_LOG_HELP) -> LogUnreadable:
    """Return T403 with what helps."""
    return LogUnreadable(what, where=where, found=found, help=help)


def as_table_error(error: BaseException, where: str) -> MaintainerError:
    """Turn an exception met while reading a table into an error with the right T (or E) code."""
    chain = _chain_or_error(error, where, "cancelled while the table was read")
    if isinstance(chain, MaintainerError):
        return chain
    for cause_of in (storage_error, failing_disk, damaged_file_error, missing_file_error):
        if (cause := cause_of(chain, where)) is not None:
            return cause
    # Delta 4.0 refuses a catalog's table without a condition.
    conditions = {failure.condition or failure.message for failure in chain}
    found = _engine_message(chain)

    is_unknown_feature = any(_UNKNOWN_FEATURE.match(condition) for condition in conditions)
    if any(_OF_CATALOG.match(condition) for condition in conditions) or (
        is_unknown_feature and _FEATURE_OF_CATALOG.search(found.rpartition(": ")[2])
    ):
        return not_permitted(where, found)
    if is_unknown_feature or any(failure.type_name == "InvalidProtocolVersionException" for failure in chain):
        what = "the table needs a feature that this version of Delta does not know"
        allowed = "features of the Delta in use"
        help = "the table is left as it is; remove it from the policies to silence this"
        return TableError(what, code="T404", where=where, found=found, allowed=allowed, help=help)
    if conditions & _NO_SUCH:
        return no_table("there is no such table", where, found)
    if conditions & _NOT_A_TABLE:
        return not_delta("this is not a Delta table", where, found, allowed=None)
    way_out = DAMAGED_LOG_HELP if _is_about_the_log(error, chain) else UNKNOWN_CAUSE_HELP
    return log_unreadable("the table's log cannot be read", where, found, way_out)


def is_store_silent(error: BaseException) -> bool:
    """Whether storage elsewhere gave no answer, or was too busy for one, each time that its client tried.

    Then every further request waits as long again, so that another way to read the same table is no help.
    """
    chain = _chain_or_error(error, "", "")
    return isinstance(chain if isinstance(chain, MaintainerError) else storage_error(chain, ""), StoreSilent)


def catalog_error(error: BaseException, where: str) -> MaintainerError:
    """Turn an exception met while a catalog was asked into an error with the right code: T401 or E647 (or E612).

    Args:
        error: What was raised.
        where: The table's name, or which part of the catalog was asked.
    """
    chain = _chain_or_error(error, where, "cancelled while the catalog was asked")
    if isinstance(chain, MaintainerError):
        return chain
    if {failure.condition for failure in chain} & _NO_SUCH:
        return no_table("there is no such table in the catalog", where, _one_line(chain[0].message))
    unfit = catalog_away(where, _one_line(message_of(error)))
    unfit.is_silence = any(failure.type_name == "SocketTimeoutException" for failure in chain)
    return unfit


def catalog_away(where: str, found: str) -> CatalogAway:
    """Return E647.

    Args:
        where: The table's name, or which part of the catalog was asked.
        found: What was tried, and how it ended.
    """
    way_out = (
        "nothing was changed; check that the catalog runs and that its address in the Spark settings is right, then "
        "run the command again"
    )
    return CatalogAway("the catalog does not answer", where=where, found=found, help=way_out)


def catalog_refuses(where: str, found: str) -> CatalogAway:
    """Return E647 for a catalog that is there and does not tell what it was asked; arguments as for `catalog_away`."""
    way_out = "nothing was changed; check the token, and what the catalog lets its user see, then run the command again"
    return CatalogAway("the catalog refuses an answer", where=where, found=found, help=way_out)


def _is_about_the_log(error: BaseException, chain: tuple[Failure, ...]) -> bool:
    """Whether the error comes from Delta, names a file of the log, or arose while its content was parsed."""
    return isinstance(error, (ValueError, LookupError)) or any(
        failure.condition.startswith("DELTA_") or LOG_FOLDER in failure.message for failure in chain
    )


def _engine_message(chain: tuple[Failure, ...]) -> str:
    """Return Delta's message on one line; if there is only Spark's, with its cause."""
    delta = next((failure.message for failure in chain if failure.condition.startswith("DELTA_")), None)
    if delta is not None:
        return _one_line(delta)
    why = next((failure.message for failure in reversed(chain[1:]) if failure.message), "")
    return _one_line(f"{chain[0].message}: {why}" if why and why not in chain[0].message else chain[0].message)


def _one_line(text: str) -> str:
    return " ".join(_SQLSTATE.sub("", text).split())


def commit_failed(what: str, where: str, chain: tuple[Failure, ...], help: str) -> CommitNotLanded:
    """Return the error of a commit that did not land, by the innermost failure that says anything."""
    innermost = next((failure for failure in reversed(chain) if failure.message), chain[0])
    error = CommitNotLanded(what, where=where, found=innermost.message or innermost.type_name, help=help)
    error.is_refusal = innermost.condition.startswith("DELTA_")
    return error


def as_write_error(error: BaseException, where: str, doing: str) -> MaintainerError:
    """Turn an exception met on the way to a commit (nothing is committed yet) into one of ours.

    Args:
        error: What was raised.
        where: The table, for the message.
        doing: What was being done, as "writing the new files".
    """
    chain = _chain_or_error(error, where, f"cancelled while {doing}; nothing was committed")
    if isinstance(chain, MaintainerError):
        return chain
    if (cause := storage_error(chain, where) or damaged_file_error(chain, where)) is not None:
        return cause
    innermost = message_of(error)
    if is_missing(chain):
        what = f"a file was missing while {doing}; nothing was committed"
        way_out = "if it is a file of the table, the table was damaged before: see `maintainer explain T408`"
        return FileAbsent(what, where=where, found=innermost, help=way_out)
    what = f"{doing} failed; nothing was committed"
    return CommitNotLanded(what, where=where, found=innermost, help=NOT_COMMITTED_HELP)


def first_line_of(error: BaseException) -> str:
    """Return the first line of ``message_of``, cut to 200 characters."""
    return (message_of(error).splitlines() or [type(error).__name__])[0][:200]


def message_of(error: BaseException) -> str:
    """Return one short text: the innermost message that is not empty."""
    chain = describe(error)
    return next((failure.message for failure in reversed(chain) if failure.message), type(error).__name__)
