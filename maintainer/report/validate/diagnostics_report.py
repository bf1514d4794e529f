"""What ``validate`` reports: findings, counts, and the source lines that they point into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from maintainer.policy.diagnostics import CROSS_FILE, TITLES, Diagnostic
from maintainer.policy.yaml.yaml_reader import read_bytes
from maintainer.report.text.text_layout import count

FORMAT_VERSION = "1"
_TITLES = {**TITLES, **CROSS_FILE}


@dataclass(frozen=True)
class DiagnosticsReport:
    """All findings of one ``validate``, sorted, and where they are.

    ``files_read`` counts every file, ``policies`` tables and rules. ``folder`` is the project's folder relative to the
    repository, as annotations need it; empty where both are the same.
    """

    diagnostics: tuple[Diagnostic, ...]
    files_read: int
    policies: int
    seconds: float
    strict: bool = False
    folder: str = ""

    @property
    def errors(self) -> int:
        """Findings that make a file invalid."""
        return sum(diagnostic.is_error for diagnostic in self.diagnostics)

    @property
    def warnings(self) -> int:
        """Findings that do so only with ``--strict``."""
        return len(self.diagnostics) - self.errors

    @property
    def failed(self) -> bool:
        """Whether the command ends in 1."""
        return self.errors > 0 or (self.strict and bool(self.diagnostics))

    def path_in_repository(self, file: str) -> str:
        """Return a file's path as a code host needs it."""
        return f"{self.folder}/{file}" if self.folder and not file.startswith("/") else file

    def summary(self) -> str:
        """Say in one line what is wrong in how many files, and how long it took."""
        took = f"({self.seconds:.2f} s)"
        if not self.diagnostics:
            return f"{count(self.policies, 'policy', 'policies')} valid {took}"
        files = len({diagnostic.file for diagnostic in self.diagnostics})
        numbers = ((self.errors, "error"), (self.warnings, "warning"))
        findings = " and ".join(count(number, noun) for number, noun in numbers if number)
        return f"Found {findings} in {files:,} of {count(self.files_read, 'file')} {took}."


def title_of(code: str) -> str:
    """Return the general sentence of a code; the code itself where it is not known."""
    return _TITLES.get(code, code)


class Sources(Protocol):
    """Where excerpts are cut from."""

    def lines(self, file: str) -> list[str]:
        """Return the lines of a file; empty where it cannot be shown."""
        ...


class ProjectSources:
    """Reads the files with findings again, one at a time, for excerpts."""

    def __init__(self, root: Path, texts: Mapping[str, str] | None = None) -> None:
        self._root = root
        self._texts = texts or {}
        self._file = ""
        self._lines: list[str] = []

    def lines(self, file: str) -> list[str]:
        """Return the lines of a file relative to the project; empty where it cannot be shown."""
        if file != self._file:
            self._file = file
            self._lines = self._read(file)
        return self._lines

    def _read(self, file: str) -> list[str]:
        text = self._texts.get(file)
        if text is None:
            content = read_bytes(self._root / file, self._root)
            if isinstance(content, Diagnostic):
                return []
            text = content.decode("utf-8-sig", errors="replace")
        return text.replace("\r\n", "\n").split("\n")
