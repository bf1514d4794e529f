"""The log store for S3 where answers get lost: whose commit stands, and what is not known. No Spark session."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from pyarrow.fs import FileSystem

from tests.support.product import check_versions, connector_settings, ensure_jars, inspect_java
from tests.support.stores.s3_projects import store_of
from tests.support.stores.s3_server import S3Server, s3_server, spark_keys
from tests.support.stores.sick_store import ALWAYS, Fault, FaultRule

ROOT = Path(__file__).parents[3]
HARNESS = ROOT / "tests/support/stores/CommitHarness.java"
SOURCE = ROOT / "maintainer/delta/jvm/java_classes/ConditionalLogStore.java"
QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

Commit = Callable[[str, str], str]
"""Writes a version with a content; says `written`, or the class of what was thrown. Several contents are a race."""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server("lake") as server:
        yield server


@pytest.fixture(scope="module")
def store(server: S3Server) -> FileSystem:
    """Another client of the same server."""
    return store_of(server)


@pytest.fixture(scope="module")
def commit(server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commit]:
    with committing(server, tmp_path_factory.mktemp("java"), {}) as commit:
        yield commit


@contextmanager
def committing(server: S3Server, folder: Path, more: dict[str, str]) -> Iterator[Commit]:
    """Start what commits, with more settings than a session of ours has."""
    java = inspect_java()
    jars = ensure_jars(java, check_versions(), None, ("s3",))
    path_style = {"spark.hadoop.fs.s3a.path.style.access": "true"}
    settings = {**connector_settings(("s3",)), **spark_keys(server), **path_style, **more}
    class_path = ":".join([*map(str, jars), f"{Path(pyspark.__file__).parent}/jars/*"])
    hadoop = [f"{key.removeprefix('spark.hadoop.')}={value}" for key, value in settings.items()]
    log = folder / "errors.txt"
    with log.open("w") as errors:
        process = subprocess.Popen(
            (java.executable, *QUICK_JAVA, "-cp", class_path, HARNESS, SOURCE, *hadoop),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        asked, answers = process.stdin, process.stdout

        def write(name: str, content: str) -> str:
            asked.write(f"s3a://lake/{name}/_delta_log/{7:020}.json {content}\n")
            asked.flush()
            answer = answers.readline().strip()
            assert answer, log.read_text()[-3000:]
            return answer

        try:
            yield write
        finally:
            asked.close()
            process.wait(30)


def content_of(store: FileSystem, name: str) -> str:
    with store.open_input_stream(f"lake/{name}/_delta_log/{7:020}.json") as stream:
        return bytes(stream.read()).decode()


def sick(
    server: S3Server, name: str, fault: Fault, times: int = 1, method: str = "PUT", seconds: float = 0
) -> FaultRule:
    return server.faults.add(FaultRule(fault, method, f"/{name}/", ".json", times, seconds))


def test_of_two_contents_of_a_version_the_first_stands(server: S3Server, store: FileSystem, commit: Commit) -> None:
    assert [commit("two", "first"), commit("two", "second")] == ["written", "FileAlreadyExistsException"]
    assert content_of(store, "two") == "first\n"


@pytest.mark.long
def test_a_flag_by_which_hadoop_looks_no_more_before_it_writes_changes_nothing(
    server: S3Server, store: FileSystem, tmp_path: Path
) -> None:
    with committing(server, tmp_path, {"spark.hadoop.fs.s3a.performance.flags": "*"}) as commit:
        assert [commit("flags", "first"), commit("flags", "second")] == ["written", "FileAlreadyExistsException"]
    assert content_of(store, "flags") == "first\n"


def test_of_two_writers_of_a_version_at_once_one_is_acknowledged_and_its_text_stands(
    store: FileSystem, commit: Commit
) -> None:
    for number in range(20):
        ends = commit(f"race-{number}", "first second").split()
        assert sorted(ends) == ["FileAlreadyExistsException", "written"], number
        assert content_of(store, f"race-{number}") == ("first\n", "second\n")[ends.index("written")]


@pytest.mark.parametrize(
    ("fault", "times", "requests"),
    [
        (Fault.LOST_ANSWER, 1, 2),
        (Fault.LOST_ANSWER, 3, 4),
        (Fault.LOST_REQUEST, 2, 3),
        (Fault.FAILS, 2, 3),
        (Fault.SLOW_DOWN, 2, 3),
    ],
)
def test_a_commit_that_is_asked_for_again_is_written_once(
    server: S3Server, store: FileSystem, commit: Commit, fault: Fault, times: int, requests: int
) -> None:
    name = f"{fault.name}-{times}"
    server.faults.clear()
    sick(server, name, fault, times)
    assert commit(name, "mine") == "written"
    assert server.faults.num_requests("PUT", ".json") == requests
    assert content_of(store, name) == "mine\n"


def test_a_lost_answer_about_anothers_commit_is_a_conflict(server: S3Server, store: FileSystem, commit: Commit) -> None:
    assert commit("theirs", "theirs") == "written"
    sick(server, "theirs", Fault.LOST_ANSWER)
    assert commit("theirs", "mine") == "FileAlreadyExistsException"
    assert content_of(store, "theirs") == "theirs\n"


@pytest.mark.long
@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.FAILS])
def test_a_commit_that_is_never_answered_is_neither_written_nor_refused(
    server: S3Server, commit: Commit, fault: Fault
) -> None:
    name = f"never-{fault.name}"
    server.faults.clear()
    sick(server, name, fault, ALWAYS)
    assert commit(name, "mine") == "UnansweredCommit"
    assert server.faults.num_requests("PUT", ".json") == 8, "four tries of two requests"
    server.faults.clear()


@pytest.mark.long
def test_a_refusal_that_cannot_be_looked_into_is_not_known(server: S3Server, commit: Commit) -> None:
    """The version is there: it may be ours, whose answer was lost, and nobody can read which."""
    sick(server, "blind", Fault.LOST_ANSWER)
    for method in ("GET", "HEAD"):
        sick(server, "blind", Fault.FAILS, ALWAYS, method)
    assert commit("blind", "mine") == "UnansweredCommit"
    server.faults.clear()
    assert commit("blind", "mine") == "written"


@pytest.mark.long
def test_a_commit_that_was_given_up_may_still_be_written(server: S3Server, store: FileSystem, commit: Commit) -> None:
    """So what it names must stay: Hadoop waits 15 seconds, and a server can be slower."""
    late = sick(server, "late", Fault.LATE, seconds=100)
    sick(server, "late", Fault.LOST_REQUEST, ALWAYS)
    assert commit("late", "mine") == "UnansweredCommit"
    late.released.set()
    assert late.done.wait(30)
    server.faults.clear()
    assert content_of(store, "late") == "mine\n"
