"""The list of what is called of Delta's private surface is complete: read from the source, call by call.

``DeltaJvm.self_test`` looks for everything on the list, in the Delta that runs; test_jvm_contract.py lets it look in
the Delta that the product fetches. A call that is not on the list would be found missing only when it is made.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.jvm.bridge import PYSPARK, REQUIRED
from maintainer.delta.jvm.log_calls import KERNEL

FOLDER = Path(__file__).parents[4] / "maintainer" / "delta" / "jvm"
LISTED = REQUIRED + KERNEL
MODULES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.py"))

PUBLIC = {
    # Java and Hadoop.
    "method handles": {"findStatic", "methodType", "publicLookup", "asInterfaceInstance"},
    "methods as functions": {"getMethod", "insertArguments", "unreflect"},
    "bytes and processes": {"allocate", "put", "slice", "array", "current", "decode", "encode", "limit", "pid", "wrap"},
    "lists": {"_array_list", "add", "addAll", "replaceAll"},
    "java": {"_path", "toUri", "toString", "getFileSystem", "valueOf", "of", "compile", "boxed", "findFirst"},
    "java properties": {"getProperty"},
    "reflection": {
        "currentThread", "getContextClassLoader", "forName", "getConstructors", "getMethods", "getDeclaredFields",
        "genericWrapArray", "getParameterCount", "stringOf", "matcher", "replaceAll",
    },
    # Janino, the compiler in Spark, and the class that it makes for us.
    "janino": {"SimpleCompiler", "setParentClassLoader", "cook"},
    "loading a class": {"getClass", "getClassLoader", "loadClass", "newInstance", "new_array", "getScheme"},
    "our own Java classes": {"guard", "release", "leaveCheckpoint"},
    "our own functions": {"start", "open_jvm", "hadoop_conf", "open_store", "copy_row_groups"},
    # Scala.
    "scala": {"empty", "apply", "get", "isDefined", "size", "toScala", "toSeq", "toScalaMap", "addString"},
    "scala buffers": {"subtractOne", "addOne"},
    "scala text": {"StringBuilder", "clear", "length"},
    "scala futures": {"value", "isFailure"},
    # Spark: its session, context, catalog, and what PySpark itself calls of it.
    "spark": {
        "setActiveSession", "getActiveSession", "clearActiveSession",
        "setLocalProperty", "setJobGroup", "sc", "createMetric", "set", "unset", "toDF", "as",
        "collectAsList", "sessionState", "sqlParser", "parseTableIdentifier", "catalog", "tableExists",
        "getTableMetadata", "provider", "location", "tableType", "name", "withColumn", "expr",
        "statusTracker", "getActiveJobsIds", "getJobIdsForGroup", "getJobInfo", "getStageInfo",
        "Observation", "observe", "conf", "setConfString", "unsetConf",
        "collect", "where", "selectExpr", "cancelJobGroupAndFutureJobs",
    },
    "spark's catalogs": {
        "catalogManager", "isCatalogRegistered", "currentCatalog", "parseMultipartIdentifier", "head", "tail",
        "MultipartIdentifierHelper", "asIdentifier", "loadTable", "properties", "listDatabases", "listTables",
        "getTablesByName", "identifier", "table",
    },
    # Jackson, below Delta's own mapper.
    "jackson": {"constructCollectionType", "getTypeFactory", "readValue", "writeValueAsBytes"},
    # Hadoop's and Spark's own paths and configuration.
    "hadoop": {"getParent", "makeQualified", "newHadoopConf", "getPropertySources", "getIOStatistics", "counters"},
    # Delta Kernel: an interface of its own, in a JAR of the same release.
    "kernel": {
        "loadSnapshot", "atVersion", "build", "create", "close", "getMetadata", "getProtocol",
        "getRows", "getScanBuilder", "getScanFiles", "getTimestamp", "hasNext", "next", "isPresent", "map", "toRow",
        "writeCheckpoint",
        "getLatestTransactionVersion", "DeletionVectorDescriptor", "toArray",
        "getFileSystemClient", "resolvePath", "SnapshotManager", "Path", "getLogSegmentForVersion",
        "CreateCheckpointIterator", "getData", "getExpressionHandler", "getPredicateEvaluator", "eval",
        "Predicate", "Column", "appendNestedField", "ofLong",
    },
    # S3A's own client and the requests of Amazon's SDK: `require_s3_client` looks for both before they are needed.
    "s3a": {"getBucket", "getS3AInternals", "getAmazonS3Client"},
    "amazon's sdk": {
        "builder", "bucket", "code", "delete", "deleteMarkerVersionId", "deleteMarkers", "deleteObjects", "deleted",
        "errors", "isLatest", "isTruncated", "key", "keyMarker", "listObjectVersions", "message", "objects", "prefix",
        "quiet", "versionId", "versions",
    },
    # py4j: a JVM beside the Python of an executor.
    "py4j": {"launch_gateway", "Configuration"},
    # parquet-hadoop, which Spark brings along.
    "parquet": {"Builder", "ParquetRewriter", "processBlocks", "prune", "transform", "fromConf", "upper"},
    # Public versions.
    "delta and spark": {"VERSION", "SPARK_VERSION"},
    # Python.
    "python": {
        "loads", "dumps", "setdefault", "rpartition", "findall", "split", "items", "append", "_jdf", "__init__", "join",
        "field", "files", "read_text", "Lock", "RLock", "_compile", "lower", "strip", "intersection",
        "enumerate", "fromkeys", "monotonic", "sleep", "escape", "splitlines", "endswith", "startswith", "group",
        "enter_context", "ExitStack", "uuid4", "time", "remove", "now", "glob", "replace", "poll", "cache_clear",
    },
}  # fmt: skip
ALLOWED = set().union(*PUBLIC.values())
OURS = {name for base in DeltaJvm.__mro__ for name in vars(base)}


def calls(name: str) -> Iterator[tuple[str, int, int]]:
    """Name, number of arguments and line of every method call of a module on something that is not us.

    -1 for arguments of which so many are taken as the installed Delta has: any number that is listed.
    """
    for node in ast.walk(ast.parse((FOLDER / name).read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        on_us = isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
        if on_us and node.func.attr in OURS:
            continue
        cut = any(isinstance(argument, ast.Starred) for argument in node.args)
        yield node.func.attr, -1 if cut else len(node.args) + len(node.keywords), node.lineno


def test_modules_are_found() -> None:
    assert {
        "bridge.py",
        "gateway.py",
        "java_classes/compiled_classes.py",
        "log_calls.py",
        "storage_calls.py",
        "transaction_calls.py",
    } <= set(MODULES)
    assert sum(1 for name in MODULES for _ in calls(name)) > 80


@pytest.mark.parametrize("name", MODULES)
def test_every_call_is_on_the_list_or_public(name: str) -> None:
    listed = {(method, count) for _, method, counts in LISTED for count in (*counts, *[-1] * (len(counts) > 1))}
    made = {
        (cls.rpartition(".")[2].rpartition("$")[2], count)
        for cls, method, counts in LISTED
        for count in counts
        if method == "<init>"
    }
    unlisted = [
        f"{name}:{line}: {method}/{count}"
        for method, count, line in calls(name)
        if (method, count) not in listed and method not in ALLOWED and (method, count) not in made
    ]
    assert unlisted == []


@pytest.mark.parametrize("name", MODULES)
def test_every_object_that_is_named_is_on_the_list(name: str) -> None:
    """Scala objects and nested classes are reached by a name in a string."""
    classes = {cls for cls, _, _ in LISTED}
    tree = ast.parse((FOLDER / name).read_text(encoding="utf-8"))
    named = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[-1], ast.Constant):
            continue
        by_name = isinstance(node.func, ast.Name) and node.func.id == "getattr"
        text = node.args[-1].value
        if (
            (by_name or getattr(node.func, "attr", "") in ("_module", "_in_delta"))
            and isinstance(text, str)
            and "$" in text
        ):
            named.add(text)
    assert named - {"package$", "MODULE$"} <= classes


def test_nothing_is_on_the_list_twice() -> None:
    assert len({member[:2] for member in LISTED}) == len(LISTED)


INTERNAL_MODULES = ("pyspark.find_spark_home", "pyspark.java_gateway", "pyspark.sql.classic", "pyspark.sql.internal")
CLASSES = {"InternalFunction", "SparkContext", "SparkSession"}


def private_of_pyspark(tree: ast.AST) -> Iterator[str]:
    """What a module takes that is not public: from an internal module, or a class's member below `_`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(INTERNAL_MODULES):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = node.value.id
            if owner == "InternalFunction" or (owner in CLASSES and node.attr.startswith("_")):
                yield f"{owner}.{node.attr}"


def test_what_is_private_in_pyspark_is_on_the_list() -> None:
    used = {
        name
        for path in FOLDER.parents[1].rglob("*.py")
        for name in private_of_pyspark(ast.parse(path.read_text(encoding="utf-8")))
    }
    listed = {name.partition(":")[2] for name in PYSPARK}
    assert used - CLASSES == listed


def test_no_class_is_asked_for_part_by_part() -> None:
    """``jvm.org.apache...`` has the JVM search all JARs for `org`, `org.apache` and so on: 100 searches a table."""
    package = FOLDER.parents[1]
    asked = {
        f"{path.relative_to(package)}: {found}"
        for path in package.rglob("*.py")
        for found in re.findall(r"jvm\.(?:com|io|java|org|scala)\.\w+", path.read_text(encoding="utf-8"))
    }
    assert asked == {"delta/jvm/sessions.py: jvm.org.apache"}, "see `java_class`"
