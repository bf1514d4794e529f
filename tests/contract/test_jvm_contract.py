"""The private surface of Delta that the engine stands on, checked on the JARs that the product fetches."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import maintainer
from tests.support.product import (
    SESSION_ENABLED,
    SESSION_PREFIX,
    DeltaEngine,
    DeltaJvm,
    EnvironmentUnfit,
    SessionLease,
    Status,
    bridge,
    check_engine,
    gateway,
    log_calls,
)
from tests.support.product import session_settings as settings
from tests.support.suites.jvm_call_owners import watched_owners

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_this_delta_has_all_of_it(lease: SessionLease) -> None:
    calls = DeltaJvm(lease.spark)
    calls.self_test()
    assert calls.lacking(log_calls.KERNEL) == []
    assert calls.is_tested
    assert (calls.spark_version(), calls.delta_version()) == (version("pyspark"), version("delta-spark"))


def test_of_workers_that_begin_at_once_one_looks_for_all_of_it(
    lease: SessionLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, look = list[str](), DeltaJvm.self_test
    together = threading.Barrier(3, timeout=60)

    def noted(calls: DeltaJvm) -> None:
        looks.append(threading.current_thread().name)
        look(calls)

    def work(name: str) -> None:
        together.wait()
        with engine.worker(name):
            pass

    monkeypatch.setattr(DeltaJvm, "self_test", noted)
    engine = DeltaEngine(lease)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, ("one", "two", "three")))
    assert len(looks) == 1


NOT_IN_DELTA_4_0 = {
    "spark.databricks.delta.conflictChecker.enforceConcurrentFeatureEnablement.enabled",
    "spark.databricks.delta.featureEnablement.conflictResolution.enabled",
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration",
}
"""Settings of what Delta 4.1 or 4.2 began to do."""


def keys_in_the_source() -> set[str]:
    """Every key of a setting of Delta's in the package, also those that begin with the prefix of `OPTIMIZE`'s."""
    keys = {f"{SESSION_PREFIX}{name}" for name in ("minNumFiles", "minFileSize", "maxFileSize")}
    keys.add(f"{SESSION_PREFIX}modifiedPartitionsOnly.enabled")
    for path in Path(maintainer.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        keys.update(re.findall(r'"(spark[.]databricks[.]delta(?:[.]\w+)+)"', text))
        keys.update(f"spark.databricks.delta.optimize.{rest}" for rest in re.findall(r"{_OPTIMIZE}([\w.]+)", text))
    return keys | {SESSION_ENABLED}


def test_every_setting_of_delta_s_that_is_used_is_listed_and_has_its_key(lease: SessionLease) -> None:
    java: Any = lease.spark._jvm
    entries = java.org.apache.spark.sql.delta.sources.DeltaSQLConf
    listed = {str(getattr(entries, name)().key()) for _, name, _ in bridge.SETTINGS}
    assert keys_in_the_source() == listed | NOT_IN_DELTA_4_0
    known = {key for key in NOT_IN_DELTA_4_0 if lease.spark.conf.isModifiable(key)}
    assert known == NOT_IN_DELTA_4_0 or version("delta-spark") < "4.2"


def test_spark_knows_every_setting_of_its_own_that_is_used(lease: SessionLease) -> None:
    keys = {*settings.FORCED, *settings.PINNED, *settings.SLOW_DEFAULTS}
    unknown = {key for key in keys if key.startswith("spark.sql.") and not lease.spark.conf.isModifiable(key)}
    assert unknown == set()


def test_what_is_missing_is_named(lease: SessionLease, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = (
        ("DeltaLog", "createDataFrame", (9, 8)),
        ("DeltaLog", "update", (3,)),
        ("NoSuchThing", "x", (0,)),
        ("storage.DelegatingLogStore", "schemeToLogStore", ()),
    )
    monkeypatch.setattr(bridge, "REQUIRED", wrong)
    monkeypatch.setattr(
        bridge, "PYSPARK", ("pyspark:SparkContext._gateway", "pyspark:SparkContext._gone", "pyspark.no:a")
    )
    with pytest.raises(EnvironmentUnfit) as caught:
        DeltaJvm(lease.spark).self_test()
    assert caught.value.code == "E633"
    assert caught.value.found == (
        "DeltaLog.createDataFrame/9/8, NoSuchThing.x/0, storage.DelegatingLogStore.schemeToLogStore, "
        "pyspark:SparkContext._gone, pyspark.no:a"
    )
    assert f"Delta {version('delta-spark')}" in caught.value.what
    engine = DeltaEngine(lease)
    with pytest.raises(EnvironmentUnfit, match="NoSuchThing"), engine.worker("a"):
        pass  # no worker begins


def test_a_call_on_another_owner_than_the_listed_one_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    jvm, ours = DeltaJvm(spark), "maintainer.OwnTransactions$OwnTransaction"
    snapshots_alone = [entry for entry in bridge.REQUIRED if entry[:2] != ("OptimisticTransaction", "metadata")]
    txn = jvm.start_transaction(jvm.log_at(f"file:{tmp_path}"))
    for listed, unlisted in ((bridge.REQUIRED, set()), (snapshots_alone, {(ours, "metadata", 0)})):
        with watched_owners(listed) as owners:
            jvm.metadata(txn)
        assert (set(owners.unlisted), (ours, "metadata", 0) in owners.seen) == (unlisted, True)


def test_doctor_says_what_an_unknown_pair_has_and_lacks(lease: SessionLease, monkeypatch: pytest.MonkeyPatch) -> None:
    jvm = DeltaJvm(lease.spark)
    monkeypatch.setattr(gateway, "TESTED_DELTA", {})
    monkeypatch.setattr(log_calls, "KERNEL", (("io.delta.kernel.Gone", "read", (1,)),))
    kernel, unknown = check_engine(jvm)
    assert (kernel.status, unknown.status) == (Status.WARN, Status.WARN)
    assert "io.delta.kernel.Gone.read/1" in kernel.detail
    assert "nobody ran this pair" in unknown.detail
    monkeypatch.setattr(bridge, "REQUIRED", (("DeltaLog", "gone", (2,)),))
    with pytest.raises(EnvironmentUnfit, match="E633"):
        list(check_engine(jvm))
