"""Deciding about the environment costs no engine: neither pyspark nor Great Expectations is imported."""

from __future__ import annotations

import subprocess
import sys

ENGINES = ("pyspark", "delta", "py4j", "great_expectations", "pandas", "numpy")


def imported_by(code: str) -> set[str]:
    """Run code in a fresh interpreter and return which of the engines it imported."""
    probe = f"{code}\nimport sys\nprint('|'.join(m for m in {ENGINES!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True)
    return set(filter(None, done.stdout.strip().split("|")))


def test_the_probe_sees_an_import() -> None:
    assert "py4j" in imported_by("import py4j")


def test_session_modules_import_no_engine() -> None:
    modules = "spark_session, session_settings, jvm_launch, jars, java_home, installed_versions, engine_log"
    imports = f"from maintainer.delta.spark import {modules}\nfrom maintainer.delta.doctor import doctor_checks"
    assert imported_by(imports) == set()


def test_looking_for_an_active_session_imports_none() -> None:
    assert (
        imported_by("from maintainer.delta.spark.spark_session import active_session\nassert active_session() is None")
        == set()
    )
