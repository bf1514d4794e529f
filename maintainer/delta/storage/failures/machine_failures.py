"""Recognize failures of storage, files and memory, which say nothing of a table's log. Pure.

The input is a chain of failures, outermost first (see ``engine_failures.describe``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from maintainer.delta.storage.failures.store_answers import PATH_STYLE, Failure, client_error, names_s3, store_error
from maintainer.errors import EnvironmentUnfit, FileUnreadable, MaintainerError, StoreRefusal, StoreSilent, TableError
from maintainer.errors.missing_files import MISSING_HELP, RESTORE_TAKES_BACK
from maintainer.model.table.log_names import LOG_FOLDER

_PERMISSION = frozenset({"AccessControlException", "AccessDeniedException"})
_DENIED = re.compile(r"Permission denied|Operation not permitted|Read-only file system|\(403\)|Status Code: 403")
_READ_ONLY = "Read-only file system"
_FULL = re.compile(r"No space left on device|Disk quota exceeded|ENOSPC|DSQuotaExceeded", re.IGNORECASE)
_FAILING = re.compile(
    "Input/output error|Remote I/O error|Stale (?:NFS )?file handle|Transport endpoint is not connected|"
    "Host is down|Connection timed out"
)
"""What the system says of a disk or a network mount (EIO, EREMOTEIO, ESTALE, ENOTCONN, EHOSTDOWN, ETIMEDOUT)."""
_TOO_MANY_FILES = re.compile(r"Too many open files", re.IGNORECASE)
_LINKAGE = frozenset(
    {
        "AbstractMethodError",
        "IncompatibleClassChangeError",
        "NoClassDefFoundError",
        "NoSuchFieldError",
        "NoSuchMethodError",
        "UnsupportedClassVersionError",
        "VerifyError",
    }
)
"""What Java throws where code meets another version of a class than it was compiled for: its ``LinkageError``."""
_VECTORED_READ = "VectoredReadUtils"
_OUT_OF_MEMORY = frozenset({"OutOfMemoryError", "SparkOutOfMemoryError"})
UNREACHABLE = frozenset(
    {
        "AWSApiCallTimeoutException",
        "AWSNoResponseException",
        "ConnectException",
        "ConnectTimeoutException",
        "HttpChannelEOFException",
        "NoHttpResponseException",
        "NoRouteToHostException",
        "PortUnreachableException",
        "SocketException",
        "SocketTimeoutException",
        "StoreAway",
        "UnknownHostException",
    }
)
"""The classes, Java's and ours, for a store or a service that was not reached, or went silent."""

_TLS = frozenset({"SSLException", "SSLHandshakeException", "SSLPeerUnverifiedException", "SSLProtocolException"})
_ADDRESSED = re.compile(r"Connect to \S+ |Unable to execute HTTP request: Connect to \S+ ")
"""A message that names the address which took no connection; Java's own does not."""
_BUCKET = re.compile(r"\bs3[an]?://([^/\s:'`]+)")
_NO_CONNECTOR = frozenset({"UnsupportedFileSystemException"})
_CONNECTOR_CLASS = re.compile(r"Class \S*(?:FileSystem|\.fs\.\S+) not found")
_KIND_BY_SIGN = {
    "s3a.S3AFileSystem": "s3",
    'scheme "s3"': "s3",
    'scheme "s3a"': "s3",
    "azurebfs": "azure",
    'scheme "abfs': "azure",
    "fs.gcs": "gcs",
    'scheme "gs"': "gcs",
}
MISSING = frozenset({"FileNotFoundException", "NoSuchFileException"})
"""Java's classes for a file that is not there; also for one that may not be opened."""

_FAILED_READ = "FAILED_READ_FILE"
_FILE_READ = re.compile(r"while reading file (\S+?)\.(?=\s|$)")
_FOREIGN_TYPES = frozenset(
    {"PARQUET_CONVERSION_FAILURE", "PARQUET_TYPE_ILLEGAL", "PARQUET_TYPE_NOT_RECOGNIZED", "PARQUET_TYPE_NOT_SUPPORTED"}
)
_TYPE_MISMATCH = "[FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH]"
"""What Spark says of a sound file with a type that it does not read, as time stamps in nanoseconds, or not as this."""
_DAMAGED_VECTOR = re.compile(
    r"DELTA_DELETION_VECTOR_(?:CARDINALITY|CHECKSUM|SIZE)_MISMATCH|DELTA_DELETION_VECTOR_INVALID"
)


def storage_error(chain: Sequence[Failure], where: str) -> MaintainerError | None:
    """Return the error for a failure of storage or memory (full, denied, unreachable ...); None for anything else."""
    text = "\n".join(failure.message for failure in chain)
    kinds = {failure.type_name for failure in chain}
    innermost = next((failure.message for failure in reversed(chain) if failure.message), "")

    def unfit(what: str, *, code: str, help: str) -> EnvironmentUnfit:
        return EnvironmentUnfit(what, code=code, where=where, found=innermost, help=help)

    if _FULL.search(text):
        return unfit("storage is full", code="E631", help="free space, then run `maintainer apply` again")
    if _TOO_MANY_FILES.search(text):
        way_out = "raise the limit (`ulimit -n 65536`), or work on fewer tables at once with -j"
        return unfit("this process has too many files open", code="E636", help=way_out)
    if kinds & _OUT_OF_MEMORY:
        way_out = "pass --conf spark.driver.memory=8g, or make batches smaller: `optimize.batchSize` in the policy"
        return unfit("Spark ran out of memory", code="E637", help=way_out)
    if (misfit := next((failure for failure in chain if failure.type_name in _LINKAGE), None)) is not None:
        return _jars_unfit(where, f"{misfit.type_name}: {misfit.message}")
    if kinds & _NO_CONNECTOR or ("ClassNotFoundException" in kinds and _CONNECTOR_CLASS.search(text)):
        what, way_out = "Spark has no connector for this storage", _connector_help(text)
        return TableError(what, code="T436", where=where, found=innermost, help=way_out)
    if (answered := store_error(chain, where)) is not None:
        return answered
    if kinds & _TLS:
        return StoreRefusal(
            "there is no secure connection to the storage", code="T446", where=where, found=innermost,
            help="an address with http:// for a server without TLS; or give Java the server's certificate, in "
            'maintainer.yml: `spark: {conf: {spark.driver.extraJavaOptions: "-Djavax.net.ssl.trustStore=FILE"}}`; '
            "this says nothing of the table's content",
        )  # fmt: skip
    if kinds & UNREACHABLE:
        said = (" ".join(failure.message.split()) for failure in chain)
        found = next((text for text in said if _ADDRESSED.match(text)), innermost)
        away = unreachable(where, found, is_s3=names_s3(text), bucket_in_host=_bucket_is_the_host(chain))
        if not _bucket_is_the_host(chain):
            return away
        return StoreRefusal(away.what, code=away.code, where=where, found=found, help=away.help)
    if _DENIED.search(text) or kinds & _PERMISSION:
        way_out = "give this user read and write access to the table's folder"
        if "Service: S3" in text:
            way_out += " and the right to list it (s3:ListBucket), without which S3 refuses what is not there"
        if _READ_ONLY in text:
            way_out = "mount the storage for writing, or leave the table out of the policies"
        what = "permission denied on the table's storage"
        return TableError(what, code="T405", where=where, found=innermost, help=way_out)
    return client_error(chain, where)


def _bucket_is_the_host(chain: Sequence[Failure]) -> bool:
    """Whether no such host was found as the bucket's name before the address: the store wants it in the path."""
    hosts = {failure.message.strip() for failure in chain if failure.type_name == "UnknownHostException"}
    buckets = {bucket for failure in chain for bucket in _BUCKET.findall(failure.message)}
    return any(host.startswith(f"{bucket}.") for host in hosts for bucket in buckets)


def failing_disk(chain: Sequence[Failure], where: str) -> TableError | None:
    """Return T447 where the system could not read what lies on a disk or a mount; None for anything else."""
    failure = next((failure for failure in reversed(chain) if _FAILING.search(failure.message)), None)
    if failure is None:
        return None
    way_out = (
        "look into the system's log (`dmesg`) and at the mount, then run `maintainer apply` again; this says nothing "
        "of the table's content"
    )
    what = "the disk or the network mount with the table fails"
    return TableError(what, code="T447", where=where, found=failure.message, help=way_out)


def unreachable(where: str, found: str, *, is_s3: bool, bucket_in_host: bool = False) -> TableError:
    """Return T435.

    Args:
        where: The table.
        found: What was tried, and how it ended.
        is_s3: Whether the address is one that S3's setting names.
        bucket_in_host: Whether the bucket was asked for as a part of the host.
    """
    first = f"{PATH_STYLE}; else check" if bucket_in_host else "check"
    address = "; the address is `spark.hadoop.fs.s3a.endpoint` in maintainer.yml" if is_s3 else ""
    way_out = f"{first} the network, the address and the service{address}; this says nothing of the table's content"
    return StoreSilent("the storage cannot be reached", where=where, found=found, help=way_out)


def _jars_unfit(where: str, raised: str) -> EnvironmentUnfit:
    help_text = "name the connector or the package in the version that was made for this Spark and its Hadoop"
    if _VECTORED_READ in raised:
        # https://github.com/GoogleCloudDataproc/hadoop-connectors/pull/1498
        help_text = "maintainer.yml: `spark: {conf: {spark.hadoop.parquet.hadoop.vectored.io.enabled: false}}`"
    what = "two JARs of this Spark do not fit each other"
    way_out = f"{help_text}; the table itself was not found to be damaged"
    return EnvironmentUnfit(what, code="E672", where=where, found=raised, help=way_out)


def _connector_help(text: str) -> str:
    kind = next((kind for sign, kind in _KIND_BY_SIGN.items() if sign in text), None)
    if kind is None:
        return "name its package: `spark: {packages: [...]}` in maintainer.yml, in Spark's own version of Hadoop"
    return f"maintainer.yml: `storage: [{kind}]`; a session that was started elsewhere must bring the connector itself"


def file_that_failed(chain: Sequence[Failure]) -> str | None:
    """The data file that Spark was reading when it failed; None where it was none, or was a file of the log."""
    for failure in chain:
        match = _FILE_READ.search(failure.message) if failure.condition == _FAILED_READ else None
        if match is not None:
            return None if f"/{LOG_FOLDER}/" in match[1] else match[1]
    return None


def is_missing(chain: Sequence[Failure]) -> bool:
    """Whether a file was not there. Over Spark Connect there are no classes, only what Spark says."""
    return any(
        failure.type_name in MISSING or "[FAILED_READ_FILE.FILE_NOT_EXIST]" in failure.message for failure in chain
    )


def damaged_file_error(chain: Sequence[Failure], where: str) -> FileUnreadable | None:
    """The error for a data file, or a deletion vector, that is there and cannot be read; None for anything else."""
    file = file_that_failed(chain)
    vector = next((failure for failure in chain if _DAMAGED_VECTOR.match(failure.condition)), None)
    if vector is None and (file is None or is_missing(chain)):
        return None
    innermost = next((failure.message for failure in reversed(chain) if failure.message), "")
    message = innermost if file is None or file in innermost else f"{file}: {innermost}"

    def unreadable(what: str, help: str) -> FileUnreadable:
        error = FileUnreadable(what, where=where, found=" ".join(message.split()), help=help)
        error.file = file
        return error

    if any(failure.condition in _FOREIGN_TYPES or _TYPE_MISMATCH in failure.message for failure in chain):
        return unreadable(
            "Spark cannot read the type of a column in a data file of the table",
            "nothing was changed, and the file is most likely whole: restore nothing; write its rows again in a type "
            "that Spark reads (time stamps in microseconds, not nanoseconds), with a program that can read it",
        )
    return unreadable(
        "a data file of the table cannot be read",
        "nothing was changed; try to read the file with another program: if that fails, too, bring the file back from "
        f"a backup; {RESTORE_TAKES_BACK}",
    )


def missing_file_error(chain: Sequence[Failure], where: str) -> TableError | None:
    """The error for a data file of the table that Spark did not find; None for anything else."""
    file = file_that_failed(chain)
    if file is None or not is_missing(chain):
        return None
    return TableError("a data file of the table is missing", code="T422", where=where, found=file, help=MISSING_HELP)
