"""Find the files of a project, in one fixed order and without following links.

The name of a file's table is read from its first lines, without reading the YAML: whoever asks for one table of
thousands need not read the files of all others. A name is returned only where YAML can mean nothing else: everything
above it is a comment, or a key with a short value on its line. Any other file has to be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from maintainer.errors import NoProject, ProjectError
from maintainer.policy.diagnostics import PROJECT_FILE as PROJECT_FILE
from maintainer.policy.diagnostics import START_OF_FILE, Diagnostic, Severity
from maintainer.units import grouped

POLICY_FOLDER = "policies"
PROFILE_FOLDER = "_profiles"
TEST_FOLDER = "_tests"

MAX_FILES = 20_000
"""Policy files of one project. A fleet of more tables is better named by rules, or cut into projects."""

MAX_FOLDERS = 20_000
"""Folders looked into, so that a tree without policies ends too."""


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """The files of a project, each list sorted by path; findings are about folders that are links."""

    project_file: Path | None
    policies: tuple[Path, ...]
    profiles: tuple[Path, ...]
    findings: tuple[Diagnostic, ...]


def find_files(root: Path) -> ProjectFiles:
    """Find maintainer.yml and everything under policies/ that ends in .yml or .yaml.

    Names that begin with a dot are not looked at, nor is ``policies/_tests/``: it holds tests of policies.

    Raises:
        ProjectError: E611 there is no project here; E614 too many files; E615 the project file is maintainer.yaml.
    """
    project_file = root / PROJECT_FILE
    has_project_file = os.path.lexists(project_file)
    if os.path.lexists(root / "maintainer.yaml"):
        raise ProjectError(
            "the project file has the wrong ending", code="E615", where="maintainer.yaml", help="call it maintainer.yml"
        )
    folder = root / POLICY_FOLDER
    if not has_project_file and not folder.is_dir():
        help = "run `maintainer init` to make a project here, or name one with `--project DIR`"
        message = "this is not a project: neither maintainer.yml nor policies/ is here"
        raise NoProject(message, where=str(root), help=help)
    findings: list[Diagnostic] = []
    paths = sorted(islice(_yaml_files(folder, root, findings), MAX_FILES + 1))
    if len(paths) > MAX_FILES:
        help = "let rules (`match:`) name many tables at once, or cut the fleet into several projects"
        message = f"there are more than {MAX_FILES:,} policy files"
        raise ProjectError(message, code="E614", where=str(folder), help=help)
    of_kind = grouped(paths, lambda path: PROFILE_FOLDER in path.relative_to(folder).parts[:-1])
    policies, profiles = (tuple(of_kind.get(in_profiles, ())) for in_profiles in (False, True))
    return ProjectFiles(project_file if has_project_file else None, policies, profiles, tuple(findings))


def misplaced_policies(root: Path) -> tuple[str, ...]:
    """Return files of a project outside policies/ that look like policies, at most three."""
    beside = (path for path in _yaml_beside(root) if _names_tables(path))
    return tuple(path.relative_to(root).as_posix() for path in islice(beside, _MAX_NAMED))


_MAX_NAMED = 3
_MAX_ENTRIES = 2_000
"""Entries looked at: a project may lie beside a whole lake."""
_HEAD_BYTES = 4096


def _yaml_beside(root: Path) -> Iterator[Path]:
    """Yield YAML files in the project's folder and the folders in it, but policies and hidden ones."""
    entries = _MAX_ENTRIES
    for folder, folders, names in os.walk(root, followlinks=False):
        visible = sorted(name for name in folders if not name.startswith(".") and name != POLICY_FOLDER)
        folders[:] = visible if Path(folder) == root else []
        yaml = (name for name in sorted(names) if is_policy_file(name) and not name.startswith((".", PROJECT_FILE)))
        yield from (Path(folder, name) for name in yaml)
        entries -= len(names) + 1
        if entries < 0:
            return


def _names_tables(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return re.search(rb"^(?:table|match):", file.read(_HEAD_BYTES), re.MULTILINE) is not None
    except OSError:
        return False


def find_tests(root: Path) -> tuple[Path, ...]:
    """Find the tests of policies: every YAML file under ``policies/_tests/``, sorted.

    Raises:
        ProjectError: E614, there are too many.
    """
    paths = tuple(sorted(_yaml_files(root / POLICY_FOLDER / TEST_FOLDER, root, [])))
    if len(paths) > MAX_FILES:
        help = "a file may have up to 200 tests"
        message = f"there are more than {MAX_FILES:,} files of tests"
        raise ProjectError(message, code="E614", where=TEST_FOLDER, help=help)
    return paths


def _yaml_files(folder: Path, root: Path, findings: list[Diagnostic]) -> Iterator[Path]:
    if folder.is_symlink():
        findings.append(_link(folder, root))
        return
    for count, (parent, folders, files) in enumerate(os.walk(folder, followlinks=False)):
        if count >= MAX_FOLDERS:
            help = "keep only policies under policies/, or cut the fleet into several projects"
            message = f"there are more than {MAX_FOLDERS:,} folders"
            raise ProjectError(message, code="E614", where=str(folder), help=help)
        if TEST_FOLDER in folders and Path(parent) != root / POLICY_FOLDER:
            not_read = f"this folder is not read: tests of policies are in {POLICY_FOLDER}/{TEST_FOLDER}"
            findings.append(_about(Path(parent, TEST_FOLDER), root, not_read, "move its files there"))
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != TEST_FOLDER)
        findings.extend(_link(Path(parent, name), root) for name in folders if Path(parent, name).is_symlink())
        like_a_file = "this is a folder that is called like a policy; the files in it are read"
        folders_like = (Path(parent, name) for name in folders if is_policy_file(name))
        findings.extend(_about(folder, root, like_a_file, "rename the folder") for folder in folders_like)
        for name in files:
            if is_policy_file(name) and not name.startswith("."):
                yield Path(parent, name)
            elif _LIKE_A_POLICY.search(name) and not name.startswith("."):
                message = "this file is not read: policies end in `.yml` or `.yaml`"
                findings.append(_about(Path(parent, name), root, message, "rename it, or move it out of policies/"))


_LIKE_A_POLICY = re.compile(r"\.ya?ml\W|\.jsonc?$|\.ya?ml[^.]*$", re.IGNORECASE)
"""Names of files that somebody may take for policies: ``b.json``, ``t.yml.txt``, ``t.yml~``."""


def is_policy_file(name: str) -> bool:
    """Tell by its name whether a file is read as a policy."""
    return name.lower().endswith((".yml", ".yaml"))


def _about(path: Path, root: Path, message: str, help: str, code: str = "P394") -> Diagnostic:
    severity = Severity.WARNING if code == "P394" else Severity.ERROR
    return Diagnostic(code, severity, message, path.relative_to(root).as_posix(), START_OF_FILE, help)


def _link(folder: Path, root: Path) -> Diagnostic:
    message = "this folder is a symbolic link; its files are not read"
    return _about(folder, root, message, "put the files themselves into the project", "P355")


_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.@-]*"
_END = r"(?:[ ]+#[^\n\r]*|[ ]*)\r?\n"
_COMMENT = r"[ ]*(?:#[^\n\r]*)?\r?\n"
_SHORT_KEY = rf"(?!table:)[A-Za-z]+:[ ]+(?:{_WORD}|\[[ ]*{_WORD}(?:,[ ]*{_WORD})*[ ]*\]){_END}"
_PLAIN_NAME = r"[A-Za-z_./][A-Za-z0-9_./-]*(?::/[A-Za-z0-9_./@-]*)?"
_FIRST_LINES = re.compile(
    rf"\ufeff?(?:{_COMMENT}|{_SHORT_KEY})*"
    rf"table:[ ]+(?:\"(?P<double>[^\"\\\n\r]+)\"|'(?P<single>[^'\n\r]+)'|(?P<plain>{_PLAIN_NAME})){_END}"
    # What follows is another key: an indented line would go on with the name.
    r"(?:[A-Za-z#\r\n]|\Z)"
)


def table_in_first_lines(content: bytes) -> str | None:
    r"""Return the table that a file certainly names; None where only reading the YAML can tell.

    >>> table_in_first_lines(b"version: 1\ntable: sales.orders  # the shop\n")
    'sales.orders'
    >>> table_in_first_lines(b"{version: 1, table: sales.orders}\n") is None
    True
    """
    line = _FIRST_LINES.match(content.decode("utf-8", errors="replace"))
    return None if line is None else line["double"] or line["single"] or line["plain"]
