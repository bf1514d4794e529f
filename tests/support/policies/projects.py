"""Small projects on disk: a map of file names to texts, written and loaded."""

from __future__ import annotations

import subprocess
import textwrap
from collections.abc import Mapping
from pathlib import Path

from maintainer.policy.project.policy_project import LoadedProject, load_project


def write_project(root: Path, files: Mapping[str, str]) -> Path:
    """Write files below ``root``; ``version: 1`` is put before each YAML file that does not begin with it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = textwrap.dedent(text)
        if name.endswith((".yml", ".yaml")) and not text.startswith("version:"):
            text = "version: 1\n" + text
        path.write_text(text, encoding="utf-8")
    return root


def loaded(root: Path, files: Mapping[str, str], env: str | None = None) -> LoadedProject:
    """Write a project and load it, without this process's environment variables."""
    return load_project(write_project(root, files), env, environ={})


def complaints(project: LoadedProject) -> list[str]:
    """Return ``file:line:column code`` of every finding."""
    return [f"{d.file}:{d.span.line}:{d.span.column} {d.code}" for d in project.diagnostics]


def git(root: Path, *arguments: str) -> None:
    """Run git in a folder, as somebody."""
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True, timeout=60)
