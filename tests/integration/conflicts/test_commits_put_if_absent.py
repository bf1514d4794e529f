"""Commits on Azure, Google and HDFS are put-if-absent: of four writers of one version one wins, and three are told so.

Delta's own log store for each scheme, through the connector that is fetched, if one is needed, and with the settings
that a session of ours gives it, against a server of the protocol. No Spark session is started.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.product import check_versions, connector_settings, ensure_jars, inspect_java, jar_folder
from tests.support.stores.store_servers import AZURE_ACCOUNT, AZURE_KEY, azurite, fake_gcs, hdfs

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

RACE = Path(__file__).resolve().parents[2] / "support" / "stores" / "LogStoreRace.java"
ROUNDS = 6
HOST = f"{AZURE_ACCOUNT}.dfs.core.windows.net"


def race(kinds: tuple[str, ...], store: str, folder: str, settings: Mapping[str, str]) -> list[str]:
    """Let four writers commit the same versions, and return what came of each round."""
    java, versions = inspect_java(), check_versions()
    ensure_jars(java, versions, None, kinds)
    places = f"{versions.spark_home}/jars/*:{jar_folder()}/*"
    ours = {key.removeprefix("spark.hadoop."): value for key, value in connector_settings(kinds).items()}
    conf = [f"{key}={value}" for key, value in {**ours, **settings}.items()]
    done = subprocess.run(
        (str(java.executable), "-cp", places, str(RACE), f"io.delta.storage.{store}", folder, str(ROUNDS), *conf),
        capture_output=True, text=True, timeout=800, check=False,
    )  # fmt: skip
    if "jdk.compiler" in done.stderr:
        pytest.skip("this Java is no JDK, so it compiles nothing")
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_on_azure() -> None:
    with azurite("lake") as endpoint:
        settings = {
            "fs.azure.abfs.endpoint": endpoint.removeprefix("http://").partition("/")[0],
            f"fs.azure.account.key.{HOST}": AZURE_KEY,
            "fs.azure.account.hns.enabled": "false",
            "fs.azure.fns.account.service.type": "BLOB",
            "fs.azure.always.use.https": "false",
            "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
        }
        rounds = race(("azure",), "AzureLogStore", f"abfs://lake@{HOST}/t/_delta_log", settings)
    assert rounds == ["round 1 3"] * ROUNDS


def test_on_google() -> None:
    with fake_gcs("lake") as url:
        settings = {"fs.gs.storage.root.url": f"{url}/", "fs.gs.auth.type": "UNAUTHENTICATED"}
        rounds = race(("gcs",), "GCSLogStore", "gs://lake/t/_delta_log", settings)
    assert rounds == ["round 1 3"] * ROUNDS


def test_on_hdfs(tmp_path: Path) -> None:
    with hdfs(tmp_path) as (uri, _):
        rounds = race((), "HDFSLogStore", f"{uri}/t/_delta_log", {})
    assert rounds == ["round 1 3"] * ROUNDS


def test_a_store_that_renames_loses_commits_on_google() -> None:
    """Why such a store is refused there (A432)."""
    with fake_gcs("lake") as url:
        settings = {"fs.gs.storage.root.url": f"{url}/", "fs.gs.auth.type": "UNAUTHENTICATED"}
        rounds = race(("gcs",), "HDFSLogStore", "gs://lake/t/_delta_log", settings)
    assert any(int(line.split()[1]) > 1 for line in rounds), rounds
