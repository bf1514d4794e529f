"""Real bind mounts, where this machine permits them: one folder or file that is reached by two paths."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

BindMount = Callable[[Path, Path], None]
"""Mounts a source onto a target that is made for it."""


@functools.cache
def mounts_permitted() -> bool:
    """Try it once. Where it is not, generated examples leave mounts out, and tests of mounts alone are skipped."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/source", f"{folder}/target"
        os.mkdir(source)
        os.mkdir(target)
        try:
            done = subprocess.run(["mount", "--bind", source, target], capture_output=True, timeout=30, check=False)
        except OSError:
            return False
        if done.returncode == 0:
            subprocess.run(["umount", target], capture_output=True, timeout=30, check=True)
        return done.returncode == 0


@contextlib.contextmanager
def bind_mounts() -> Iterator[BindMount]:
    """Give a function that mounts; skip the test where mounts are not permitted; unmount in the end."""
    mounted: list[Path] = []

    def mount(source: Path, target: Path) -> None:
        if source.is_dir():
            target.mkdir(parents=True)
        else:
            target.touch()
        try:
            done = subprocess.run(["mount", "--bind", source, target], capture_output=True, timeout=30, check=False)
        except OSError as error:
            pytest.skip(f"no mount on this machine: {error}")
        if done.returncode:
            pytest.skip(f"mounts are not permitted: {done.stderr.decode(errors='replace').strip()}")
        mounted.append(target)

    try:
        yield mount
    finally:
        for target in reversed(mounted):
            subprocess.run(["umount", target], capture_output=True, timeout=30, check=True)
