"""Tests of tables on a disk that must hold on a store, run there: rewrites, proofs, and writers beside each other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.stores.connector_jars import folder_with_connector
from tests.support.suites.store_lake import SWITCH

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(4 * 3600)]

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "suite",
    [
        "verification/test_forged_rewrites.py",
        "conflicts/test_interleavings.py",
        "conflicts/test_carried_deletes.py",
        "rewrite/test_neutrality.py",
        "parity",
    ],
)
def test_a_suite_holds_on_an_s3_server(suite: str) -> None:
    environment = {**os.environ, SWITCH: "s3", "MAINTAINER_JARS": folder_with_connector("s3")}
    # A test that is stopped in a call of the JVM makes all later ones of its process fail.
    command = (sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "", "--timeout=1800", "-p", "no:cacheprovider")
    done = subprocess.run(
        (*command, f"tests/integration/{suite}"), cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-20_000:]
