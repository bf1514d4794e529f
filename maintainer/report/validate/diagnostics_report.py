"""What `validate` has to say, before it takes a form: findings, counts, and the source they point into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from maintainer.policy.diagnostics.diagnostic_codes import CROSS_FILE, TITLES
from maintainer.policy.diagnostics.diagnostics import Diagnostic
from maintainer.policy.yaml.yaml_reader import read_bytes
from maintainer.report.text.text_layout import count

FORMAT_VERSION = "1"
_TITLES = {**TITLES, **CROSS_FILE}


@dataclass(frozen=True)
class DiagnosticsReport:
    """All findings of one `validate`, sorted, and what they were found in.

    ``files_read`` counts every file, ``policies`` tables and rules. ``folder`` is the project's folder as paths
    in an annotation need it: relative to the repository, empty where both are the same.
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
        return sum(one.is_error for one in self.diagnostics)

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
        """One line: what was found in how many files, and how long it took."""
        took = f"({self.seconds:.2f} s)"
        if not self.diagnostics:
            return f"{count(self.policies, 'policy', 'policies')} valid {took}"
        files = len({one.file for one in self.diagnostics})
        found = [
            count(self.errors, "error") if self.errors else "",
            count(self.warnings, "warning") if self.warnings else "",
        ]
        return f"Found {' and '.join(filter(None, found))} in {files:,} of {count(self.files_read, 'file')} {took}."


def title_of(code: str) -> str:
    """Return the general sentence of a code; the code itself where it is not known."""
    return _TITLES.get(code, code)


class Sources(Protocol):
    """Where excerpts are cut from."""

    def lines(self, file: str) -> list[str]:
        """Return the lines of a file; empty where it cannot be shown."""
        ...


class ProjectSources:
    """Reads files again for excerpts, with the same care as when checking; keeps one at a time.

    Findings come sorted by file, so each file with findings is read once more and nothing piles up.
    """

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
