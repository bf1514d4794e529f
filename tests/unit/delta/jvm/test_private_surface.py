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
from maintainer.delta.jvm.gateway import full_name
from maintainer.delta.jvm.log_calls import KERNEL

FOLDER = Path(__file__).parents[4] / "maintainer" / "delta" / "jvm"
PACKAGE = FOLDER.parents[1]
SOURCES = sorted(PACKAGE.rglob("*.py"))
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
        "genericWrapArray", "getName", "getParameterCount", "stringOf", "matcher", "replaceAll",
    },
    # Janino, the compiler in Spark, and the class that it makes for us.
    "janino": {"SimpleCompiler", "setParentClassLoader", "cook"},
    "loading a class": {"getClass", "getClassLoader", "loadClass", "newInstance", "new_array", "getScheme"},
    "our own Java classes": {"guard", "release", "leaveCheckpoint"},
    "our own functions": {"start", "open_jvm", "hadoop_conf", "open_store", "copy_row_groups"},
    # Scala.
    "scala": {"empty", "apply", "get", "isDefined", "size", "toScala", "addString"},
    "scala buffers": {"subtractOne", "addOne"},
    "scala text": {"StringBuilder", "clear", "length"},
    "scala futures": {"value", "isFailure"},
    # Spark's and PySpark's own interfaces: session, context, frames, configuration.
    "spark": {
        "setLocalProperty", "setJobGroup", "sc", "set", "unset", "toDF", "as", "SparkConf",
        "collectAsList", "withColumn", "expr",
        "statusTracker", "getActiveJobsIds", "getJobIdsForGroup", "getJobInfo", "getStageInfo",
        "Observation", "observe",
        "collect", "where", "selectExpr",
    },
    "spark's catalogs": {"name", "head", "tail", "loadTable", "properties"},
    # Jackson, below Delta's own mapper.
    "jackson": {"constructCollectionType", "getTypeFactory", "readValue", "writeValueAsBytes"},
    # Hadoop's and Spark's own paths and configuration.
    "hadoop": {"getParent", "makeQualified", "getPropertySources", "getIOStatistics", "counters"},
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
    "parquet": {"Builder", "ParquetRewriter", "processBlocks", "prune"},
    # Public versions.
    "delta and spark": {"VERSION", "SPARK_VERSION"},
    # Python.
    "python": {
        "loads", "dumps", "setdefault", "rpartition", "findall", "split", "items", "append", "__init__", "join",
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


PUBLIC_CLASSES = {
    "io.delta.kernel.data.Row",
    "io.delta.package",
    "io.delta.sql.DeltaSparkSessionExtension",
    "org.apache.spark.SparkConf",
    "org.apache.spark.package",
    "org.apache.spark.sql.SaveMode",
    "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "org.apache.spark.sql.functions",
}
CLASS = re.compile(r"(?:org\.apache\.(?:spark|parquet)|io\.delta)(?:\.[a-z]\w*)*\.(?:[A-Z][\w$]*|package\$|functions)")


def named_classes(tree: ast.AST) -> Iterator[str]:
    """Full names of all classes that a module names by a string, whether alone or below Delta's package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CLASS.fullmatch(node.value):
            yield node.value.removesuffix("$")
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("_module", "_in_delta"):
            first = node.args[0]
            if isinstance(first, ast.Constant):
                yield full_name(str(first.value)).removesuffix("$")


def test_every_class_that_is_named_is_on_the_list_or_public() -> None:
    """In the whole package, not in one folder: classes are reached by a name in a string."""
    listed = {full_name(cls).removesuffix("$") for cls, _, _ in LISTED}
    named = {name for path in SOURCES for name in named_classes(ast.parse(path.read_text(encoding="utf-8")))}
    assert len(named & listed) > 30
    assert named - listed == PUBLIC_CLASSES


def test_classes_are_asked_for_in_one_folder() -> None:
    """Nobody else may reach one: a call there would be on no list."""
    reaching = {
        path.relative_to(PACKAGE).as_posix()
        for path in SOURCES
        if re.search(r"\bjava_class\b|MODULE\$", path.read_text(encoding="utf-8"))
    }
    assert reaching <= {f"delta/jvm/{name}" for name in MODULES}


def test_nothing_is_on_the_list_twice() -> None:
    assert len({member[:2] for member in LISTED}) == len(LISTED)


INTERNAL_MODULES = ("pyspark.find_spark_home", "pyspark.java_gateway", "pyspark.sql.classic", "pyspark.sql.internal")
CLASSES = {"InternalFunction", "SparkContext", "SparkSession"}


OF_PYTHON = {"_exit", "_replace", "_run_exitfuncs"}
"""What modules take of Python's library."""


def made_here(tree: ast.AST) -> Iterator[str]:
    """Names of functions and attributes that a module of ours makes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def private_of_pyspark(tree: ast.AST) -> Iterator[str]:
    """What a module takes that is not public: from an internal module, or a member below `_` of any object but us."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(INTERNAL_MODULES):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            is_private = re.match("_[a-z]", node.attr) is not None
            if owner == "InternalFunction" or (owner in CLASSES and is_private):
                yield f"{owner}.{node.attr}"
            elif owner not in ("self", "cls") and is_private:
                yield node.attr


def test_what_is_private_in_pyspark_is_on_the_list() -> None:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES]
    listed = {name.partition(":")[2] for name in PYSPARK}
    members = {name.rpartition(".")[2] for name in listed}
    ours = {name for tree in trees for name in made_here(tree)} - members
    used = {name for tree in trees for name in private_of_pyspark(tree)} - CLASSES - OF_PYTHON - ours
    assert {name for name in used if "." in name or not name.startswith("_")} <= listed
    assert {name.rpartition(".")[2] for name in used} == members


def test_no_class_is_asked_for_part_by_part() -> None:
    """``jvm.org.apache...`` has the JVM search all JARs for `org`, `org.apache` and so on: 100 searches a table."""
    asked = {
        f"{path.relative_to(PACKAGE)}: {found}"
        for path in SOURCES
        for found in re.findall(r"jvm\.(?:com|io|java|org|scala)\.\w+", path.read_text(encoding="utf-8"))
    }
    assert asked == {"delta/jvm/sessions.py: jvm.org.apache"}, "see `java_class`"
