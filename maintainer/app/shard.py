"""Cuts a fleet among several drivers: each table belongs to exactly one shard, whatever else is in the fleet."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from maintainer.policy.selectors import Selectable

MAX_SHARDS = 1000

_P = TypeVar("_P", bound=Selectable)
_SPELLED = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True)
class Shard:
    """The ``number``-th of ``total`` shards, from 1."""

    number: int
    total: int

    @staticmethod
    def parse(text: str) -> Shard:
        """Read ``2/5``.

        Raises:
            ValueError: Not a shard, or one beyond the last.
        """
        match = _SPELLED.fullmatch(text)
        if match is None or not int(match[1]) <= int(match[2]) <= MAX_SHARDS:
            raise ValueError(f"`{text[:20]}` is not a shard: write i/n with 1 <= i <= n <= {MAX_SHARDS:,}, such as 2/5")
        return Shard(int(match[1]), int(match[2]))

    def holds(self, identifier: str) -> bool:
        """Tell whether a table is in this shard: by a hash of its identifier, which no process seeds."""
        digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") % self.total == self.number - 1

    def of(self, policies: Sequence[_P]) -> tuple[_P, ...]:
        """Those of the policies that are in this shard, in their order."""
        return tuple(policy for policy in policies if self.holds(policy.table.identifier))
