"""What a commit did to the rows is said with their number: of those that were there, how many are missing or new."""

from __future__ import annotations

import pytest

from maintainer.delta.verify.commit_checks import row_problems
from maintainer.model.run.receipts import Fingerprint

ROWS = Fingerprint(2_400, (1, 2))


@pytest.mark.parametrize(
    ("added", "differing", "said"),
    [
        (ROWS, 0, []),
        (Fingerprint(1_200, (1, 2)), 0, ["1,200 of 2,400 rows are missing after this commit"]),
        (Fingerprint(3_600, (1, 2)), 0, ["1,200 new rows after this commit, beside 2,400"]),
        (Fingerprint(2_400, (1, 3)), 0, ["2,400 rows on both sides, and their fingerprints differ"]),
        (ROWS, 2, ["2 rows on one side only"]),
    ],
)
def test_rows_are_counted(added: Fingerprint, differing: int, said: list[str]) -> None:
    assert row_problems(ROWS, added, differing) == said
