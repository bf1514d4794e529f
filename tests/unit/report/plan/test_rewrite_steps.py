"""Rewrites, clustering and purges in words and figures, as plan, why, show and the ledger have them."""

from __future__ import annotations

import pytest

from maintainer.journal.ledger.ledger_rows import predicted
from maintainer.model.plan.layout_tags import RewriteRequest
from maintainer.model.plan.plan_document import totals
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import (
    Batch,
    Bin,
    ClusterStep,
    CompactStep,
    PartitionRewriteStep,
    PurgeStep,
    RewriteStep,
)
from maintainer.model.run.receipts import Amounts
from maintainer.report.plan.step_text import describe
from tests.support.tables.builders import MIB, make_files

FILES = make_files(3 * MIB, 5 * MIB)
ONE_COMMIT = (Batch((Bin(FILES),)),)
TWO_COMMITS = (Batch((Bin(FILES[:1]),)), Batch((Bin(FILES[1:]),)))
REASONS = (Reason(ReasonCode.REWRITE_DUE, "because"),)


@pytest.mark.parametrize(
    ("step", "word", "facts", "num_added"),
    [
        (
            PartitionRewriteStep(ONE_COMMIT, RewriteRequest(4, None), 4, REASONS),
            "rewrite",
            "2 files, 8 MiB -> about 4 files, 4 a partition",
            4,
        ),
        (
            PartitionRewriteStep(TWO_COMMITS, RewriteRequest(None, 2 * MIB, ("a", "b.c")), 4, REASONS),
            "rewrite",
            "2 files, 8 MiB -> about 5 files, of about 2 MiB each, sorted by a, b.c, in 2 commits",
            5,
        ),
        (
            ClusterStep(ONE_COMMIT, ("id", "v"), MIB, 1, 2, 4, False, REASONS),
            "cluster",
            "2 files, 8 MiB -> about 8 files of about 1 MiB, clustered by id, v",
            8,
        ),
        (
            ClusterStep(ONE_COMMIT, ("id",), 100 * MIB, 1, 2, 4, True, REASONS),
            "cluster",
            "2 files, 8 MiB -> about 1 file of about 100 MiB, clustered by id, also what other columns clustered",
            1,
        ),
        (
            PurgeStep(TWO_COMMITS, 100 * MIB, 4, REASONS),
            "purge",
            "2 files, 8 MiB -> about 2 files of up to 100 MiB, in 2 commits",
            2,
        ),
        (
            CompactStep(ONE_COMMIT, 100 * MIB, 4, REASONS, repartition=True),
            "compact",
            "2 files, 8 MiB -> about 1 file of up to 100 MiB, with a shuffle",
            1,
        ),
    ],
)
def test_a_step_says_what_it_does_to_how_much(step: RewriteStep, word: str, facts: str, num_added: int) -> None:
    (text,) = describe([step], None)
    assert (text.word, text.facts, text.reasons) == (word, (facts,), (("because", ""),))
    assert totals(step) == {
        "num_batches": len(step.batches),
        "num_bins": sum(len(batch.bins) for batch in step.batches),
        "num_files_removed": 2,
        "num_files_added": num_added,
        "size_bytes": 8 * MIB,
    }
    assert predicted(step) == Amounts(2, num_added, 8 * MIB, 8 * MIB)
