"""The private surface of Delta that the engine stands on, checked on the JARs that the product fetches."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest

from tests.support.product import (
    DeltaEngine,
    DeltaJvm,
    EnvironmentUnfit,
    SessionLease,
    Status,
    bridge,
    check_engine,
    gateway,
    log_calls,
    transaction_calls,
)

pytestmark = pytest.mark.spark


def test_this_delta_has_all_of_it(lease: SessionLease) -> None:
    calls = DeltaJvm(lease.spark)
    calls.self_test()
    assert calls.lacking(log_calls.KERNEL) == []
    assert calls.is_tested
    assert (calls.spark_version(), calls.delta_version()) == (version("pyspark"), version("delta-spark"))


def test_the_settings_around_a_commit_are_the_listed_ones(lease: SessionLease) -> None:
    conf: Any = lease.spark._jvm
    entries = conf.org.apache.spark.sql.delta.sources.DeltaSQLConf
    listed = {method for name, method, _ in transaction_calls.REQUIRED if name == "sources.DeltaSQLConf$"}
    used = {transaction_calls.DERIVE_CHECKSUM, transaction_calls.WRITE_CHECKSUM, transaction_calls.FILES_IN_CHECKSUM}
    used |= {transaction_calls.FILE_NAME_PREFIX}
    used |= {key for key in transaction_calls.ONE_TASK if key.startswith("spark.databricks.")}
    assert {str(getattr(entries, name)().key()) for name in listed} == used


def test_what_is_missing_is_named(lease: SessionLease, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = (
        ("DeltaLog", "createDataFrame", (9, 8)),
        ("DeltaLog", "update", (3,)),
        ("NoSuchThing", "x", (0,)),
        ("storage.DelegatingLogStore", "schemeToLogStore", ()),
    )
    monkeypatch.setattr(bridge, "REQUIRED", wrong)
    with pytest.raises(EnvironmentUnfit) as caught:
        DeltaJvm(lease.spark).self_test()
    assert caught.value.code == "E633"
    assert caught.value.found == (
        "DeltaLog.createDataFrame/9/8, NoSuchThing.x/0, storage.DelegatingLogStore.schemeToLogStore"
    )
    assert f"Delta {version('delta-spark')}" in caught.value.what
    engine = DeltaEngine(lease)
    with pytest.raises(EnvironmentUnfit, match="NoSuchThing"), engine.worker("a"):
        pass  # no worker begins


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
