"""Real bind mounts, where this machine permits them: one folder or file that is reached by two paths."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

BindMount = Callable[[Path, Path], None]
"""Mounts a source onto a target that is made for it."""


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
