"""Which installations are refused, and with which command."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from maintainer.delta.spark import installed_versions as versions
from maintainer.errors import EnvironmentUnfit


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """A Python in which exactly these distributions are installed."""
    installed = {"pyspark": "4.1.4", "delta-spark": "4.4.0"}
    (tmp_path / "pyspark" / "jars").mkdir(parents=True)
    (tmp_path / "pyspark" / "jars" / "spark-core_2.13-4.1.4.jar").touch()
    (tmp_path / "delta").mkdir()

    def version(name: str) -> str:
        try:
            return installed[name]
        except KeyError:
            raise metadata.PackageNotFoundError(name) from None

    def folder(module: str) -> Path | None:
        path = tmp_path / module
        return path if path.is_dir() else None

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(versions, "package_folder", folder)
    return installed


def refused(env: dict[str, str] | None = None) -> EnvironmentUnfit:
    with pytest.raises(EnvironmentUnfit) as caught:
        versions.check_versions(env or {})
    assert caught.value.code == "E604"
    return caught.value


def test_fitting_pair(packages: dict[str, str], tmp_path: Path) -> None:
    assert versions.check_versions({}) == versions.Versions("4.1.4", "4.4.0", tmp_path / "pyspark")


@pytest.mark.parametrize(
    ("spark", "delta"),
    [
        ("4.1.4", "4.0.1"),
        ("4.2.0", "4.3.1"),
        ("4.3.0", "4.4.0"),
        ("4.1.4", "4.4.1"),
        ("3.5.1", "3.2.0"),
        ("4.10.0", "4.4.0"),
        ("4.1.2", "4.2.0"),
        ("4.1.14", "4.1.0"),
    ],
)
def test_pairs_that_do_not_belong_together(packages: dict[str, str], spark: str, delta: str) -> None:
    packages.update({"pyspark": spark, "delta-spark": delta})
    error = refused()
    assert error.found == f"pyspark {spark}, delta-spark {delta}"
    known = spark.startswith(("4.0.", "4.1.", "4.2."))
    repair = 'pip install --force-reinstall "pyspark>=4.1,<4.2" "delta-spark==4.4.0"'
    assert error.help == ('pip install "delta-spark==4.4.0"' if known else repair)


@pytest.mark.parametrize(
    ("spark", "delta"),
    [("4.0.1", "4.0.0"), ("4.0.5", "4.4.0"), ("4.1.1", "4.2.0"), ("4.1.4", "4.3.0"), ("4.2.0", "4.4.0")],
)
def test_other_pairs_that_do(packages: dict[str, str], tmp_path: Path, spark: str, delta: str) -> None:
    packages.update({"pyspark": spark, "delta-spark": delta})
    jars = tmp_path / "pyspark" / "jars"
    (jars / "spark-core_2.13-4.1.4.jar").rename(jars / f"spark-core_2.13-{spark}.jar")
    found = versions.check_versions({})
    assert (found.pyspark, found.delta) == (spark, delta)


@pytest.mark.parametrize("name", ["pyspark", "delta-spark"])
def test_missing_distribution(packages: dict[str, str], tmp_path: Path, name: str) -> None:
    del packages[name]
    if name == "pyspark":
        (tmp_path / "pyspark").rename(tmp_path / "gone")
    assert "none" in (refused().found or "")


def test_package_folder_gone_though_metadata_is_there(packages: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pyspark").rename(tmp_path / "gone")
    assert refused().found == "pyspark none, delta-spark 4.4.0"


def test_jars_of_spark_gone(packages: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pyspark" / "jars" / "spark-core_2.13-4.1.4.jar").unlink()
    assert refused().help == 'pip install --force-reinstall "pyspark>=4.1,<4.2" "delta-spark==4.4.0"'


def test_pyspark_of_a_spark_folder_without_metadata(packages: dict[str, str], tmp_path: Path) -> None:
    del packages["pyspark"]
    (tmp_path / "pyspark" / "version.py").write_text('__version__: str = "4.1.2"\n')
    assert versions.check_versions({}).pyspark == "4.1.2"


def test_spark_home_without_a_spark(packages: dict[str, str], tmp_path: Path) -> None:
    error = refused({"SPARK_HOME": str(tmp_path / "none")})
    assert (error.what, error.help) == ("SPARK_HOME names a folder without a Spark", "unset SPARK_HOME")


def test_spark_home_of_another_line(packages: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "old" / "jars").mkdir(parents=True)
    (tmp_path / "old" / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    error = refused({"SPARK_HOME": str(tmp_path / "old")})
    assert error.help == "unset SPARK_HOME"
    assert error.found == "Spark 3.5.1 there, pyspark 4.1.4 in this Python"
