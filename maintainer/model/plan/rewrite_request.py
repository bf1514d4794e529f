"""How the files of a partition shall be written, as `optimize.rewrite` asks."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """How the files of a partition shall be: exactly one of a number and a size (bytes), and an order or none."""

    num_files: int | None
    file_size_bytes: int | None
    sort_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.num_files is None) == (self.file_size_bytes is None):
            raise ValueError("either a number of files or a size")

    @property
    def digest(self) -> str:
        """What files carry that were written so: 16 hex digits, the same for the same request in every run."""
        request = [self.num_files, self.file_size_bytes, list(self.sort_columns)]
        return hashlib.sha256(json.dumps(request, separators=(",", ":")).encode()).hexdigest()[:16]

    def num_files_of(self, size_bytes: int) -> int:
        """Return how many files a partition of so many bytes gives: the number, or the one nearest to the size."""
        if self.file_size_bytes is None:
            return self.num_files or 1
        return max(1, (size_bytes + self.file_size_bytes // 2) // self.file_size_bytes)
