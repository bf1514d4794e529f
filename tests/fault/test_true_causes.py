"""Each thing that is wrong with a table is said as what it is, by both engines, and no advice does harm."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ordinary_user import bound_by_permissions

pytestmark = pytest.mark.spark

CODES = {
    "closed table": "T405",
    "closed parent": "T405",
    "closed log": "T405",
    "log of names": "T405",
    "catalogManaged": "T407",
    "catalogOwned-preview": "T407",
    "no connector": "T436",
    "no such scheme": "T436",
    "nobody there": "T435",
    "rewrite of closed file": "T405",
    "rewrite of cut off file": "T434",
    "rewrite of garbage file": "T434",
    "rewrite of missing file": "T422",
    "sample of closed file": "T405",
    "sample of cut off file": "T434",
    "sample of garbage file": "T434",
    "sample of missing file": "T422",
}


@pytest.mark.long
def test_both_engines_name_the_true_cause(tmp_path: Path) -> None:
    command = bound_by_permissions([sys.executable, "-m", "tests.support.faults.looks", str(tmp_path)])
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    for engine, causes in json.loads(done.stdout.splitlines()[-1]).items():
        expected = {name: code for name, code in CODES.items() if engine == "transaction" or "sample" not in name}
        assert {name: said[0] for name, said in causes.items()} == expected, engine
        for name, (_, what, help) in causes.items():
            assert "CONVERT" not in help, name
            assert "_delta_log" not in help, name
            if name.endswith("file"):
                assert ".parquet" in what, name
