"""The private surface of Delta that the engine stands on, checked on the JARs that the product fetches."""

from __future__ import annotations

import pytest

from maintainer.delta.jvm import DeltaJvm, bridge
from maintainer.delta.spark.spark_session import SessionLease
from maintainer.errors import EnvironmentUnfit

pytestmark = pytest.mark.spark


def test_this_delta_has_all_of_it(lease: SessionLease) -> None:
    calls = DeltaJvm(lease.spark)
    calls.self_test()
    assert calls.delta_version() == "4.4.0"


def test_what_is_missing_is_named(lease: SessionLease, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = (("DeltaLog", "createDataFrame", 9), ("NoSuchThing", "x", 0), ("DeltaLog", "update", 3))
    monkeypatch.setattr(bridge, "REQUIRED", wrong)
    with pytest.raises(EnvironmentUnfit) as caught:
        DeltaJvm(lease.spark).self_test()
    assert caught.value.code == "E633"
    assert caught.value.found == "DeltaLog.createDataFrame/9, NoSuchThing.x/0"
    assert "Delta 4.4.0" in caught.value.what
