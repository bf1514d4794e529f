"""Tables, state and ledger on an S3 server: the first apply; a second engine reads what it left."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from deltalake import write_deltalake
from pyarrow.fs import FileSelector

from tests.support.product import check_versions, ensure_jars, inspect_java, store_settings
from tests.support.stores.s3_projects import S3Project, make_project, store_of, uri
from tests.support.stores.s3_server import S3Server, s3_server
from tests.support.stores.sick_store import ALWAYS, Fault, FaultRule

pytestmark = [pytest.mark.spark, pytest.mark.long]

LEDGER = "s3://lake/_maintainer/ledger"


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server("lake") as server:
        yield server


def ledger_rows(project: S3Project) -> list[tuple[str, str, str]]:
    rows = project.table(LEDGER).to_pyarrow_table().to_pylist()
    return sorted((row["table"], row["kind"], row["status"]) for row in rows)


def test_apply_compacts_a_table_and_makes_the_ledger(server: S3Server, tmp_path: Path) -> None:
    project = make_project(tmp_path, server, {"orders": "optimize: {}"})
    project.append("orders", 6)
    rows = project.rows("orders")
    assert (len(project.table("orders").file_uris()), sum(rows.values())) == (6, 60)
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["problems"]) == (0, []), done.err
    assert done.document["counts"]["done"] == 1
    assert (len(project.table("orders").file_uris()), project.rows("orders")) == (1, rows)
    assert project.table("orders").version() == 6
    assert ledger_rows(project) == [(uri("orders"), "compact", "succeeded")]


def test_a_bucket_in_the_host_is_refused_before_any_file_is_written(server: S3Server, tmp_path: Path) -> None:
    """The server has a name here: without path style Hadoop asks for `lake.localhost`, and so does the plan."""
    project = make_project(tmp_path, server, {"orders": "optimize: {}"})
    settings = project.root / "maintainer.yml"
    named = settings.read_text().replace("state: s3://lake/_maintainer\n", "").replace("127.0.0.1", "localhost")
    settings.write_text(named.replace("    spark.hadoop.fs.s3a.path.style.access: true\n", ""))
    project.append("orders", 2)
    before = data_files(project)
    for command in (("plan",), ("apply", "--yes")):
        done = project.run(*command)
        assert (done.returncode, done.err.count("T435")) == (1, 1), done.err
        assert "spark.hadoop.fs.s3a.path.style.access: true" in done.err
    assert data_files(project) == before
    settings.write_text(named)
    assert project.run("apply", "--yes").returncode == 0
    assert len(project.table("orders").file_uris()) == 1


def test_a_trash_is_refused(server: S3Server, tmp_path: Path) -> None:
    project = make_project(tmp_path, server, {"orders": "vacuum: {retention: 7d, trash: 7d}"})
    project.append("orders", 1)
    done = project.run("plan", "-o", "json")
    (table,) = done.document["tables"]
    assert (done.returncode, table["problem"]["code"]) == (1, "T431"), done.out


def test_a_vacuum_deletes_what_the_log_removed_and_nothing_else(server: S3Server, tmp_path: Path) -> None:
    policy = "vacuum: {retention: 1s, allowShortRetention: true, allowLargeDelete: true}"
    project = make_project(tmp_path, server, {"orders": policy})
    project.append("orders", 6, **{"delta.deletedFileRetentionDuration": "interval 1 second"})
    rows, old = project.rows("orders"), set(project.table("orders").file_uris())
    project.table("orders").optimize.compact()
    (new,) = project.table("orders").file_uris()
    assert data_files(project) == old | {new}
    time.sleep(2)  # a command that begins at once would find nothing that is old enough
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["problems"]) == (0, []), done.err
    assert data_files(project) == {new}, done.out
    assert project.rows("orders") == rows
    assert ("vacuum", "succeeded") in {row[1:] for row in ledger_rows(project)}


def data_files(project: S3Project) -> set[str]:
    """The Parquet files that lie in the table's folder, listed by another client."""
    files = store_of(project.server).get_file_info(FileSelector("lake/tables/orders"))
    return {f"s3://{file.path}" for file in files if file.path.endswith(".parquet")}


_ADDRESSES = """
import java.net.URI;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.endpoints.S3EndpointProvider;

public class Addresses {
    public static void main(String[] args) {
        for (int i = 0; i < args.length; i += 2) {
            String endpoint = args[i], bucket = args[i + 1];
            System.out.println(S3EndpointProvider.defaultProvider().resolveEndpoint(asked -> asked
                .endpoint(endpoint).bucket(bucket).region(Region.US_EAST_1).forcePathStyle(false)).join().url());
        }
    }
}
"""


def test_the_address_of_a_bucket_is_the_one_that_amazons_sdk_asks(tmp_path: Path) -> None:
    """What Hadoop's client does with an endpoint, so that a plan and the session that carries it out see one server."""
    asked = [
        (endpoint, bucket)
        for endpoint in ("http://localhost:9000", "https://store.example.com", "https://store/s3", "http://10.0.0.1:9000",
                         "https://[::1]:9000", "https://s3-fips.us-east-1.amazonaws.com")
        for bucket in ("lake", "my.lake", "my-lake2", "3rd", "a-.b", "192.168.5.4")
    ]  # fmt: skip
    (tmp_path / "Addresses.java").write_text(_ADDRESSES)
    java = inspect_java()
    jars = ":".join(map(str, ensure_jars(java, check_versions(), None, ("s3",))))
    command = (
        java.executable,
        "-cp",
        f"{jars}:{Path(pyspark.__file__).parent}/jars/*",
        str(tmp_path / "Addresses.java"),
    )
    done = subprocess.run(
        (*command, *(text for pair in asked for text in pair)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for (endpoint, bucket), address in zip(asked, done.stdout.split(), strict=True):
        conf = {"spark.hadoop.fs.s3a.endpoint": endpoint}
        config = store_settings(f"s3://{bucket}/t", conf, {}).config
        in_host = config["virtual_hosted_style_request"] == "true"
        assert (config["endpoint"] if in_host else f"{config['endpoint']}/{bucket}") == address


@pytest.mark.parametrize(
    ("policy", "num_files"),
    [
        ("optimize: {}", 1),
        ("optimize: {zorder: {columns: [id], mode: full}}", 1),
        ("optimize: {lanes: [local, spark], codec: zstd}", 1),
    ],
)
def test_the_lane_local_rewrites_files_of_a_store(
    server: S3Server, tmp_path: Path, policy: str, num_files: int
) -> None:
    project = make_project(tmp_path, server, {"orders": policy})
    project.append("orders", 6)
    rows = project.rows("orders")
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["problems"]) == (0, []), done.err
    assert (len(project.table("orders").file_uris()), project.rows("orders")) == (num_files, rows)
    (lanes,) = project.table(LEDGER).to_pyarrow_table().column("lanes").to_pylist()
    assert "local" in str(lanes)
    assert "spark" not in str(lanes).lower()


@pytest.mark.parametrize("fault", [Fault.CUTS, Fault.CHANGES])
def test_a_new_file_that_the_store_does_not_hold_as_written_is_not_committed(
    server: S3Server, tmp_path: Path, fault: Fault
) -> None:
    project = make_project(tmp_path, server, {"orders": "optimize: {}"})
    project.append("orders", 6)
    rows = project.rows("orders")
    rule = server.faults.add(FaultRule(fault, "PUT", "/orders/", ".parquet", ALWAYS))
    done = project.run("apply", "--yes", "-o", "json")
    assert rule.num_met == 1
    assert (done.returncode != 0, "C702" in done.out + done.err) == (True, True), done.out
    assert (project.table("orders").version(), project.rows("orders")) == (5, rows)


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_what_the_store_refuses_to_this_process_goes_to_spark(server: S3Server, tmp_path: Path, method: str) -> None:
    project = make_project(tmp_path, server, {"orders": "optimize: {}"})
    project.append("orders", 6)
    rows = project.rows("orders")
    rule = server.faults.add(FaultRule(Fault.REFUSES, method, "/orders/", ".parquet", times=1))
    done = project.run("apply", "--yes", "-o", "json")
    assert (rule.num_met, done.returncode, done.document["problems"]) == (1, 0, []), done.err
    assert (len(project.table("orders").file_uris()), project.rows("orders")) == (1, rows)
    (lanes,) = project.table(LEDGER).to_pyarrow_table().column("lanes").to_pylist()
    assert "spark" in str(lanes)


@pytest.mark.parametrize("source", ["s3a://lake/tables/orders", "s3://archive/orders"])
def test_a_clone_whose_source_has_another_scheme_or_bucket_is_whole(
    server: S3Server, tmp_path: Path, source: str
) -> None:
    """Its log names files of the source as whoever made it wrote their addresses."""
    project = make_project(tmp_path, server, {"clone": "optimize: {}\nvacuum: {retention: 7d}"})
    address = source.replace("s3a:", "s3:")
    files = store_of(server)
    files.create_dir("archive")
    rows = pa.table({"id": pa.array(range(10))})
    for _ in range(6):
        write_deltalake(address, rows, mode="append", storage_options=project.options)
    root = address.removeprefix("s3://")
    logs = [file.path for file in files.get_file_info(FileSelector(f"{root}/_delta_log")) if file.is_file]
    actions = [json.loads(line) for path in sorted(logs) for line in files.open_input_stream(path).read().splitlines()]
    adds = [
        {"add": {**action["add"], "path": f"{source}/{action['add']['path']}"}} for action in actions if "add" in action
    ]
    first = [action for action in actions[:4] if "protocol" in action or "metaData" in action]
    with files.open_output_stream(f"lake/tables/clone/_delta_log/{0:020}.json") as log:
        log.write("\n".join(map(json.dumps, [*first, *adds])).encode())
    done = project.run("apply", "--yes", "-o", "json")
    assert (done.returncode, done.document["problems"]) == (0, []), done.err
    (table,) = done.document["tables"]
    assert [step["status"] for step in table["steps"]] == ["succeeded"], done.out
    assert project.rows("clone") == Counter({(number,): 6 for number in range(10)})
    assert len(project.table("clone").file_uris()) == 1
    checked = project.run("verify")
    assert (checked.returncode, "is gone" in checked.out) == (0, False), checked.out
    assert len(project.table(address).file_uris()) == 6
