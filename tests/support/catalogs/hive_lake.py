"""Runs statements on a Spark session whose catalog is Hive's, as another user of the lake would.

``python -m tests.support.catalogs.hive_lake SETTINGS STATEMENT...``: the settings are a JSON object. Prints the rows of
the last statement as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from maintainer.delta.spark.spark_session import open_session
from maintainer.engine.session_options import SessionOptions


def main(settings: str, *statements: str) -> int:
    """Run the statements in their order."""
    conf = tuple(json.loads(settings).items())
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        options = SessionOptions("local[1]", conf, Path(folder) / "spark.log")
        with open_session(options) as lease:
            for statement in statements:
                rows = [[str(value) for value in row] for row in lease.spark.sql(statement).collect()]
    sys.stdout.write(json.dumps(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
