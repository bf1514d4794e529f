"""Compile the small C libraries that are loaded before the C library (LD_PRELOAD) of a process under test."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def compiled(name: str, folder: Path) -> Path:
    """Compile the library of that name, which lies beside this module, into a folder; skips where that cannot be."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler (cc) on Linux, to stand between a process and its system calls")
    library, source = folder / f"{name}.so", Path(__file__).with_name(f"{name}.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    return library
