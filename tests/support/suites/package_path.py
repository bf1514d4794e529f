"""Where a process that a test starts finds the package, and the Spark and Delta that the test itself runs with."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE_PATH = os.pathsep.join(filter(None, (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH"))))
