"""Auto compaction as a hook that writers call after a commit or in ``foreachBatch``.

It never fails its caller. It works on a thread and in a session of its own, so that the caller's session, settings,
active session and job group stay unchanged; an error ends as a result with the reason, and is logged. It rewrites
through the same engine as ``apply``: proven before the commit.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import replace
from typing import TYPE_CHECKING

from maintainer.app.auto_compact_run import HookRequest, run_hook
from maintainer.engine.side_call import side_call
from maintainer.errors import CommitNotLanded, Interrupted, MaintainerError
from maintainer.model.codec import encode
from maintainer.model.plan.plan import as_problem
from maintainer.model.run.auto_compaction import OPERATION, RUN_PREFIX, AutoCompactResult, AutoCompactStatus
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.auto_compact_plan import AutoCompactArguments

if TYPE_CHECKING:
    from maintainer.delta.spark.spark_session import SparkSession


DEFAULT_TIMEOUT_SECONDS = 3600.0
CANCEL_SECONDS = 30.0
"""How long a cancelled attempt is waited for before the caller goes on without it."""
CANCEL_AGAIN_SECONDS = 1.0
"""How often what it runs is cancelled meanwhile: a Spark job that starts a moment later knows nothing of the first."""

OVERDUE = "C711"
_ENDED_BY_CANCEL = (Interrupted.default_code, CommitNotLanded.default_code)

_log = logging.getLogger("maintainer.auto_compact")


def auto_compact(
    spark: SparkSession,
    table: str | os.PathLike[str],
    *,
    enabled: bool | None = None,
    min_num_files: int | None = None,
    min_file_size: str | int | None = None,
    max_file_size: str | int | None = None,
    modified_partitions_only: bool | None = None,
    quiet_after_updates: str | None = None,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
) -> AutoCompactResult:
    """Compact a table's small files if there are enough of them, proven before it is committed.

    Everything is decided from the table's log, so a restart of the driver forgets nothing and other writers' files
    count as well. Each setting is taken from the argument, else from the table property ``maintainer.autoCompact.*``
    (which a policy's ``autoCompact`` map sets), else from the session's ``spark.databricks.delta.autoCompact.*``, else
    it is Delta's default.

    Args:
        spark: The writer's session. It is left exactly as it was: the work happens in a session and on a thread of
            its own.
        table: A name in the session's catalog, or a path or URI.
        enabled: True or False decides; None asks the session, then the table, as Delta does.
        min_num_files: So many small files qualify a partition; by default 50.
        min_file_size: Files smaller than this are small: bytes, or text like ``64MiB``; by default half of
            ``max_file_size``.
        max_file_size: Size of the files written; by default 128 MiB.
        modified_partitions_only: Look only at partitions written since the last auto compaction; by default true.
        quiet_after_updates: What others updated, deleted or merged less than this ago (``10m``, the default) is left
            alone; what ``spark`` itself committed right before is none of that. ``0s`` where nobody else updates.
        timeout_seconds: After this time the attempt is cancelled and commits nothing more; the writer goes on.

    Returns:
        What came of it, with the figures of OPTIMIZE. Nothing is ever raised but ``KeyboardInterrupt``, for a hook must
        not fail a write that has succeeded.
    """
    started = time.monotonic()
    name = str(table)
    group = f"{RUN_PREFIX}{uuid.uuid4().hex[:8]}"
    arguments = AutoCompactArguments(
        min_num_files, min_file_size, max_file_size, modified_partitions_only, quiet_after_updates
    )
    request = HookRequest(spark, _ref(name), group, enabled, arguments)
    try:
        longest = min(timeout_seconds, threading.TIMEOUT_MAX)  # infinity is more than a lock takes
        attempt = side_call(lambda: _guarded(lambda: run_hook(request), name), group)
        if wait([attempt], longest).done:
            result = attempt.result()
        else:
            _cancel_until_it_ends(attempt, request)
            result = _cut_short(attempt, request, timeout_seconds)
    except KeyboardInterrupt:
        # Somebody wants the whole program to stop, and that is not for a hook to swallow.
        _cancel(request)
        raise
    except Exception as error:
        result = _failure(name, error)
    return _logged(result, time.monotonic() - started)


def _ref(name: str) -> TableRef:
    if name.lower().startswith("delta.`") and name.endswith("`"):
        name = name[len("delta.`") : -1]
        return TableRef(name, name)
    return TableRef(name)


def _guarded(run: Callable[[], AutoCompactResult], name: str) -> AutoCompactResult:
    try:
        return run()
    except BaseException as error:  # nothing may reach the writer, not even an exit
        return _failure(name, error)


def _failure(name: str, error: BaseException) -> AutoCompactResult:
    try:
        if isinstance(error, MaintainerError):
            return AutoCompactResult(AutoCompactStatus.FAILED, name, as_problem(error).what, error_code=error.code)
        reason = f"{type(error).__name__}: {str(error).splitlines()[0][:300] if str(error) else 'no message'}"
    except Exception:  # an exception that cannot even be put into words
        reason = type(error).__name__
    return AutoCompactResult(AutoCompactStatus.FAILED, name, reason)


def _cut_short(attempt: Future[AutoCompactResult], request: HookRequest, timeout_seconds: float) -> AutoCompactResult:
    """The result of an attempt that was cancelled: what it came to all the same, or that this is not known."""
    why = f"not done within {timeout_seconds:g} s and cancelled"
    if not attempt.done():
        reason = (
            f"{why}, but it has not ended; if it was committing, a commit may still land: "
            f"`maintainer show {request.group}` and the table's history (userMetadata) have it then"
        )
        return AutoCompactResult(AutoCompactStatus.FAILED, request.ref.identifier, reason, error_code=OVERDUE)
    result = attempt.result()
    if result.status is not AutoCompactStatus.FAILED:
        return result
    if result.error_code not in _ENDED_BY_CANCEL:
        return replace(result, reason=f"{why}: {result.reason}")
    landed = f"what had landed stays, up to version {result.version}" if result.version else "nothing was committed"
    return replace(result, reason=f"{why}; {landed}", error_code=OVERDUE)


def _cancel_until_it_ends(attempt: Future[AutoCompactResult], request: HookRequest) -> None:
    ends = time.monotonic() + CANCEL_SECONDS
    while not attempt.done() and (left := ends - time.monotonic()) > 0:
        _cancel(request)
        wait([attempt], min(left, CANCEL_AGAIN_SECONDS))


def _cancel(request: HookRequest) -> None:
    try:
        request.control.cancel(request.group)
        request.spark.sparkContext.cancelJobGroup(request.group)
    except Exception as error:
        _log.warning("%s: jobs of %s could not be cancelled: %s", OPERATION, request.group, type(error).__name__)


def _logged(result: AutoCompactResult, seconds: float) -> AutoCompactResult:
    """The result with its duration; said in the log, under the name that Delta has for it."""
    result = replace(result, duration_seconds=seconds)
    try:
        failed = result.status is AutoCompactStatus.FAILED
        document = {"opType": f"{OPERATION}.execute.metrics" if result.compacted else OPERATION, **encode(result)}
        _log.log(logging.WARNING if failed else logging.INFO, "%s", json.dumps(document, ensure_ascii=False))
    except Exception:  # a broken log handler is no reason for the writer to fail
        return result
    return result
