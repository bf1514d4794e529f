"""The three fates of a commit, and engine failures told apart, without an engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from maintainer.delta.engine.ledger_table import LedgerTable
from maintainer.delta.storage.failures.engine_failures import (
    as_table_error,
    as_write_error,
    describe,
    is_conflict,
    table_errors,
)
from maintainer.delta.storage.failures.store_answers import Failure
from maintainer.delta.transaction.commit_fate import not_landed, settle
from maintainer.engine.process_loss import is_engine_lost
from maintainer.errors import (
    CommitNotLanded,
    CommitUnknown,
    EnvironmentUnfit,
    FileUnreadable,
    Interrupted,
    LogUnreadable,
    NoTable,
    NotDelta,
    StoreSilent,
    TableError,
)
from maintainer.journal.ledger.ledger_rows import LedgerRow


class Py4JNetworkError(Exception):
    """Named as py4j's: what is told apart is the name."""


class Py4JError(Exception):
    """Named as py4j's. With "Trace:" in it, Java has answered; without, py4j lost the connection."""


class FakeClass:
    def __init__(self, name: str) -> None:
        self._name = name

    def getName(self) -> str:
        return self._name


class FakeThrowable:
    """What py4j hands over for a Java throwable, as far as we ask it."""

    def __init__(self, name: str, message: str, cause: FakeThrowable | None = None) -> None:
        self._name, self._message, self._cause = name, message, cause

    def getClass(self) -> FakeClass:
        return FakeClass(self._name)

    def getMessage(self) -> str:
        return self._message

    def getCause(self) -> FakeThrowable | None:
        return self._cause


class JavaError(Exception):
    def __init__(self, throwable: FakeThrowable) -> None:
        super().__init__("java")
        self.java_exception = throwable


def _java(name: str, message: str, cause: FakeThrowable | None = None) -> JavaError:
    return JavaError(FakeThrowable(name, message, cause))


class Broken:
    """A session of Spark of which nothing can be had."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> object:
        raise self._error


def _in_block(error: Exception) -> None:
    with table_errors("t"):
        raise error


def _reading_the_ledger(error: Exception) -> None:
    LedgerTable(cast(Any, Broken(error)), "lake/ledger").contents()


def _looking_at_the_ledger(error: Exception) -> None:
    LedgerTable(cast(Any, Broken(error)), "lake/ledger").mark()


def _appending(error: Exception) -> None:
    row = LedgerRow(run_id="r", table="t", step_id="t/compact", kind="compact", status="succeeded", reason="")
    LedgerTable(cast(Any, Broken(error)), "lake/ledger").append("r", (row,))


PLACES = [_in_block, _reading_the_ledger, _looking_at_the_ledger, _appending]


@pytest.mark.parametrize("place", PLACES)
def test_an_error_of_ours_that_passes_through_keeps_its_cause(place: Callable[[Exception], None]) -> None:
    """Raised again from itself it would be its own cause, and what broke the connection would be forgotten."""
    lost = Py4JNetworkError("gone")
    error = TableError("permission denied on the table's storage", code="T405", where="t")
    error.__cause__ = lost
    with pytest.raises(TableError) as caught:
        place(error)
    assert caught.value.code == "T405"
    assert caught.value.__cause__ is lost
    assert is_engine_lost(caught.value)


@pytest.mark.parametrize("place", PLACES)
def test_what_the_engine_raised_is_the_cause_of_our_error(place: Callable[[Exception], None]) -> None:
    lost = Py4JNetworkError("gone")
    with pytest.raises(EnvironmentUnfit) as caught:
        place(lost)
    assert (caught.value.code, caught.value.__cause__) == ("E612", lost)


def test_an_error_after_landing_is_a_landing() -> None:
    for error in (RuntimeError("hook"), Py4JNetworkError("gone"), KeyboardInterrupt()):
        assert settle(lambda: 7, error, where="t") == 7


def test_an_error_from_the_jvm_and_no_trace_in_the_log_did_not_land() -> None:
    assert settle(lambda: None, RuntimeError("x"), where="t") is None


def test_an_answer_of_java_is_no_lost_connection() -> None:
    error = Py4JError(
        "An error occurred while calling o42.foo. Trace:\npy4j.Py4JException: Method foo does not exist\n"
    )
    assert not is_engine_lost(error)
    assert settle(lambda: None, error, where="t") is None


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("gone"),
        Py4JError("An error occurred while calling o42.commit"),
        ConnectionResetError(),
        KeyboardInterrupt(),
    ],
)
def test_a_lost_connection_and_no_trace_is_unknown(error: BaseException) -> None:
    with pytest.raises(CommitUnknown) as caught:
        settle(lambda: None, error, where="t")
    assert (caught.value.code, caught.value.where) == ("C703", "t")


@pytest.mark.parametrize(
    "kinds",
    [
        ("java.io.IOException", "maintainer.ConditionalLogStore$UnansweredCommit"),
        ("org.apache.hadoop.fs.s3a.AWSClientIOException", "java.net.SocketTimeoutException"),
        ("java.io.IOException", "java.net.ConnectException"),
    ],
)
def test_a_store_that_did_not_answer_and_no_trace_is_unknown(kinds: tuple[str, str]) -> None:
    """The files of the rewrite must stay: the store may still be doing what it was asked."""
    error = _java(kinds[0], "PUT 0-x.json", FakeThrowable(kinds[1], "Read timed out"))
    assert settle(lambda: 7, error, where="t") == 7
    with pytest.raises(CommitUnknown, match="did not answer") as caught:
        settle(lambda: None, error, where="t")
    assert (caught.value.code, caught.value.found) == ("C703", "Read timed out")


def test_a_log_that_cannot_be_read_is_unknown() -> None:
    def fail() -> int | None:
        raise OSError("storage is away")

    with pytest.raises(CommitUnknown, match="log cannot be read") as caught:
        settle(fail, RuntimeError("first"), where="t")
    assert caught.value.found == "first; then storage is away"


def test_failures_are_flattened_with_causes_and_without_stack_traces() -> None:
    error = _java(
        "org.apache.spark.SparkException",
        "[TASK_FAILED] Task failed\n\tat org.apache",
        FakeThrowable("java.nio.file.NoSuchFileException", "/t/x"),
    )
    assert describe(error) == (
        Failure("SparkException", "TASK_FAILED", "[TASK_FAILED] Task failed"),
        Failure("NoSuchFileException", "", "/t/x"),
    )


def test_python_conflict_classes_are_known_by_text() -> None:
    class ConcurrentDeleteReadException(Exception):
        _desc = "[DELTA_CONCURRENT_DELETE_READ] a concurrent DELETE"

    assert is_conflict(describe(ConcurrentDeleteReadException()))
    assert is_conflict(describe(_java("io.delta.exceptions.MetadataChangedException", "changed")))
    assert not is_conflict(describe(_java("java.io.IOException", "broken pipe")))


def test_an_engine_is_lost_when_the_connection_is_also_as_the_cause_of_something_else() -> None:
    assert is_engine_lost(Py4JNetworkError())
    assert not is_engine_lost(RuntimeError())
    assert is_engine_lost(Py4JError("java does not exist in the JVM"))
    assert is_engine_lost(Py4JError("org.apache.spark.sql.SparkSession.setActiveSession does not exist in the JVM"))
    assert is_engine_lost(Py4JError("org.apache.spark.sql.delta.util.JsonUtils.mapper does not exist in the JVM"))
    assert not is_engine_lost(Py4JError("com.example.Listener.forTable does not exist in the JVM"))
    outer = RuntimeError("reading")
    outer.__cause__ = ValueError("again")
    outer.__cause__.__cause__ = ConnectionRefusedError()
    assert is_engine_lost(outer)
    ring = RuntimeError("ring")
    ring.__cause__ = ring
    assert not is_engine_lost(ring)


@pytest.mark.parametrize(
    "message",
    [
        "Cannot call methods on a stopped SparkContext.",
        "[SPARK_JOB_CANCELLED] Job 5 cancelled because SparkContext was shut down SQLSTATE: XXKDA",
    ],
)
def test_a_context_that_was_stopped_under_us_is_an_engine_that_has_gone(message: str) -> None:
    error = _java("java.lang.IllegalStateException", message)
    assert (as_table_error(error, "t").code, as_write_error(error, "t", "writing").code) == ("E612", "E612")
    assert as_write_error(_java("x.SparkException", "[SPARK_JOB_CANCELLED] Job 5 cancelled"), "t", "w").code == "C710"


@pytest.mark.parametrize(
    ("name", "message", "kind", "code"),
    [
        ("o.DeltaAnalysisException", "[DELTA_PATH_DOES_NOT_EXIST] x", NoTable, "T401"),
        ("o.DeltaAnalysisException", "[DELTA_MISSING_DELTA_TABLE] x", NotDelta, "T402"),
        ("o.DeltaIllegalStateException", "[DELTA_STATE_RECOVER_ERROR] x", LogUnreadable, "T403"),
        ("o.DeltaUnsupportedTableFeatureException", "[DELTA_UNSUPPORTED_FEATURES_FOR_READ] x", TableError, "T404"),
        ("o.InvalidProtocolVersionException", "reader 9", TableError, "T404"),
        ("org.apache.hadoop.security.AccessControlException", "no", TableError, "T405"),
        ("java.io.FileNotFoundException", "/x (Permission denied)", TableError, "T405"),
        ("java.io.IOException", "No space left on device", EnvironmentUnfit, "E631"),
        ("java.lang.IllegalStateException", "odd", LogUnreadable, "T403"),
        ("o.DeltaUnsupportedTableFeatureException", "[DELTA_UNSUPPORTED_FEATURES_FOR_READ] catalogOwned-preview",
         TableError, "T407"),
        ("o.DeltaAnalysisException", "[DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED] x", TableError,
         "T407"),
        ("o.DeltaAnalysisException", "[DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION] x", TableError, "T407"),
        ("j.IllegalStateException", "Path based access is not supported for Catalog-Owned table: file:/t/_delta_log",
         TableError, "T407"),
        ("java.lang.ClassNotFoundException", "Class org.apache.hadoop.fs.s3a.S3AFileSystem not found", TableError,
         "T436"),
        ("org.apache.hadoop.fs.UnsupportedFileSystemException", 'No FileSystem for scheme "foo"', TableError, "T436"),
        ("java.net.ConnectException", "Call From vm to nn:8020 failed: Connection refused", StoreSilent, "T435"),
        ("java.net.UnknownHostException", "nn", StoreSilent, "T435"),
        ("java.net.SocketTimeoutException", "Read timed out", StoreSilent, "T435"),
        ("java.nio.file.FileSystemException", "/t/x: Too many open files", EnvironmentUnfit, "E636"),
        ("java.nio.file.FileSystemException", "/t/_delta_log/0.json: Stale file handle", TableError, "T447"),
        ("java.io.IOException", "Input/output error", TableError, "T447"),
        ("java.lang.OutOfMemoryError", "Java heap space", EnvironmentUnfit, "E637"),
        ("java.lang.NoSuchMethodError", "'void x.VectoredReadUtils.y(z)'", EnvironmentUnfit, "E672"),
        ("java.lang.NoClassDefFoundError", "com/google/x/Y", EnvironmentUnfit, "E672"),
        ("x.SparkException", "[SPARK_JOB_CANCELLED] Job 5 cancelled", Interrupted, "C710"),
        ("o.DeltaIllegalStateException", "[DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH] x", FileUnreadable, "T434"),
    ],
)  # fmt: skip
def test_codes_of_reading(name: str, message: str, kind: type[Exception], code: str) -> None:
    error = as_table_error(_java(name, message), "t")
    assert (type(error), error.code) == (kind, code)


def test_a_read_only_mount_is_no_matter_of_rights() -> None:
    for message, wanted in (("/t/x: Read-only file system", "mount the storage"), ("/t/x (Permission denied)", "give")):
        error = as_table_error(_java("java.nio.file.FileSystemException", message), "t")
        assert (error.code, wanted in (error.help or "")) == ("T405", True)


def test_jars_that_do_not_fit_are_no_damage_and_the_setting_that_helps_is_named() -> None:
    read = FakeThrowable("java.lang.NoSuchMethodError", "'void org.apache.hadoop.fs.VectoredReadUtils.validate(x)'")
    message = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file gs://lake/t/1.parquet. SQLSTATE: KD001"
    for turn in (as_table_error, lambda error, where: as_write_error(error, where, "reading")):
        error = turn(_java("org.apache.spark.SparkException", message, read), "gs://lake/t")
        assert error.code == "E672"
        assert (error.found or "").startswith("NoSuchMethodError: 'void ")
        assert "`spark: {conf: {spark.hadoop.parquet.hadoop.vectored.io.enabled: false}}`" in (error.help or "")


FILE = "file:/t/part-00000-5d66.c000.snappy.parquet"


def _while_reading(file: str, why: str, cause: FakeThrowable) -> FakeThrowable:
    said = f"[FAILED_READ_FILE.{why}] Encountered error while reading file {file}."
    said += " File does not exist. It is possible the underlying files have been updated." * (why == "FILE_NOT_EXIST")
    return FakeThrowable("org.apache.spark.SparkException", f"{said} SQLSTATE: KD001", cause)


READS = [
    ("NO_HINT", FakeThrowable("java.lang.RuntimeException", f"{FILE} is not a Parquet file. Expected"), "T434", "T434"),
    ("NO_HINT", FakeThrowable("java.io.IOException", "can not read class PageHeader"), "T434", "T434"),
    ("FILE_NOT_EXIST", FakeThrowable("java.io.FileNotFoundException", f"File {FILE} does not exist"), "T422", "T408"),
    ("FILE_NOT_EXIST", FakeThrowable("java.io.FileNotFoundException", f"{FILE} (Permission denied)"), "T405", "T405"),
    ("FILE_NOT_EXIST", FakeThrowable("java.io.FileNotFoundException", f"{FILE} (Too many open files)"), "E636", "E636"),
    ("NO_HINT", FakeThrowable("java.net.SocketTimeoutException", "Read timed out"), "T435", "T435"),
]


@pytest.mark.parametrize(("why", "cause", "of_reading", "of_writing"), READS)
def test_a_data_file_that_cannot_be_read_is_named_and_is_no_matter_of_the_log_or_of_writing(
    why: str, cause: FakeThrowable, of_reading: str, of_writing: str
) -> None:
    read = _while_reading(FILE, why, cause)
    written = _java("org.apache.spark.SparkException", "[TASK_WRITE_FAILED] Task failed while writing rows", read)
    for error, code in (
        (as_table_error(JavaError(read), "t"), of_reading),
        (as_write_error(written, "t", "writing the new files"), of_writing),
    ):
        assert error.code == code
        assert "log cannot be read" not in error.what
        assert "_delta_log" not in (error.help or "")
        if code in ("T434", "T422"):
            assert FILE in (error.found or "")
        if code == "T434":
            assert isinstance(error, FileUnreadable)
            assert error.file == FILE


@pytest.mark.parametrize(
    ("why", "cause"),
    [
        ("NO_HINT", "[PARQUET_TYPE_ILLEGAL] Illegal Parquet type: INT64 (TIMESTAMP(NANOS,true)). SQLSTATE: 42846"),
        ("NO_HINT", "[PARQUET_TYPE_NOT_RECOGNIZED] Unrecognized Parquet type: x. SQLSTATE: 42846"),
        ("NO_HINT", "[PARQUET_TYPE_NOT_SUPPORTED] Parquet type not yet supported: x. SQLSTATE: 42846"),
        ("NO_HINT", "[PARQUET_CONVERSION_FAILURE.UNSUPPORTED] Unable to create a Parquet converter. SQLSTATE: 42846"),
        ("PARQUET_COLUMN_DATA_TYPE_MISMATCH", "column: [id], physicalType: INT64, logicalType: string"),
    ],
)
def test_a_sound_file_whose_type_spark_does_not_read_sends_nobody_to_a_backup(why: str, cause: str) -> None:
    read = _while_reading(FILE, why, FakeThrowable("o.AnalysisException", cause))
    for error in (as_table_error(JavaError(read), "t"), as_write_error(JavaError(read), "t", "writing")):
        assert (error.code, FILE in (error.found or "")) == ("T434", True)
        assert "restore nothing" in (error.help or "")
        assert "backup" not in (error.help or "")


@pytest.mark.parametrize("turn", [as_table_error, lambda error, where: as_write_error(error, where, "writing")])
def test_whoever_is_sent_to_restore_is_told_what_it_takes_back(turn: Callable[[BaseException, str], Exception]) -> None:
    for why, cause, *_ in READS[:2]:
        help_text = getattr(turn(JavaError(_while_reading(FILE, why, cause)), "t"), "help", None)
        assert "takes back every change since" in (help_text or "")


def test_a_commit_file_is_no_data_file() -> None:
    commit = "file:/t/_delta_log/00000000000000000001.json"
    cause = FakeThrowable("java.io.FileNotFoundException", f"File {commit} does not exist")
    error = as_table_error(JavaError(_while_reading(commit, "FILE_NOT_EXIST", cause)), "t")
    assert (error.code, "backup" in (error.help or "")) == ("T403", True)


def test_a_cause_that_nobody_knows_sends_nobody_to_a_backup() -> None:
    assert "backup" not in (as_table_error(_java("java.lang.IllegalStateException", "odd"), "t").help or "")


def test_what_cannot_be_read_is_told_on_one_line_with_its_cause() -> None:
    cause = FakeThrowable("java.lang.RuntimeException", "c.parquet is not a Parquet file")
    spark = _java("org.apache.spark.SparkException", "[FAILED_READ_FILE.NO_HINT] c.parquet.  SQLSTATE: KD001", cause)
    cause_text = as_table_error(spark, "t").found
    assert cause_text == "[FAILED_READ_FILE.NO_HINT] c.parquet.: c.parquet is not a Parquet file"
    delta = _java("o.DeltaIllegalStateException", "[DELTA_VERSIONS_NOT_CONTIGUOUS] Versions (0, 2)\nA gap", cause)
    assert as_table_error(delta, "t").found == "[DELTA_VERSIONS_NOT_CONTIGUOUS] Versions (0, 2) A gap"


def test_a_failed_commit_says_what_was_found() -> None:
    error = not_landed(_java("java.io.IOException", "disk on fire"), "t")
    assert isinstance(error, CommitNotLanded)
    assert error.found == "disk on fire"
    assert isinstance(not_landed(_java("java.io.IOException", "Disk quota exceeded"), "t"), EnvironmentUnfit)


@pytest.mark.parametrize(
    ("name", "message", "is_refusal"),
    [
        ("o.DeltaAnalysisException", "[DELTA_UNKNOWN_CONFIGURATION] Unknown configuration: delta.x", True),
        ("java.io.IOException", "cannot write /lake/[DELTA_UNKNOWN_CONFIGURATION]/t", False),
        ("o.AnalysisException", "[INTERNAL_ERROR] x", False),
    ],
)
def test_only_what_delta_itself_refuses_is_a_refusal(name: str, message: str, is_refusal: bool) -> None:
    error = not_landed(_java(name, message), "t")
    assert isinstance(error, CommitNotLanded)
    assert (error.is_refusal, error.found) == (is_refusal, message)
