"""What was gained, and its money: each amount follows from the figures that stand in its formula."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from maintainer.model.plan.zorder_turn import LayoutChange, LayoutFigures, Strategy, TurnOutcome, ZOrderTurn
from maintainer.model.run.outcome import RunOutcome, TableOutcome
from maintainer.model.run.receipts import VacuumReceipt
from maintainer.model.table.store_requests import RunRequests, StoreRequests
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.project.project_sections import Prices
from maintainer.report.document.blocks import Text
from maintainer.report.document.terminal_writer import plain
from maintainer.report.html.page_parts import amounts, gain_tiles, layout_gain
from maintainer.report.run.outcome_text import WorkDone
from maintainer.report.style import Role
from tests.support.runs import sample_runs as samples

TIB, GIB = 1 << 40, 1 << 30
NOTHING = WorkDone(())


def deleting(num_files: int, size_bytes: int) -> WorkDone:
    work = WorkDone(())
    work.files_deleted, work.bytes_deleted = num_files, size_bytes
    return work


TURN = ZOrderTurn(Strategy.UNINDEXED, "1:x", 100, (1,))


def turned(name: str, before: tuple[float, int], after: tuple[float, int] | None) -> TableOutcome:
    looked = None if after is None else LayoutFigures(*after, 1.0, 0.0)
    turn = TurnOutcome(TURN, 8, LayoutFigures(*before, 3.0, 1.0), looked)
    table = samples.good_run().tables[0]
    return replace(table, ref=TableRef(name), steps=(replace(table.steps[0], turns=(turn,)),))


def texts(rows: Iterable[tuple[Text, ...]]) -> list[tuple[str, ...]]:
    return [tuple(map(plain, row)) for row in rows]


def test_of_several_runs_of_a_table_the_newest_counts() -> None:
    gain = layout_gain(
        [turned("a", (30, 9 * TIB), (12, 4 * TIB)), turned("b", (4, TIB), None), turned("a", (14, 5 * TIB), (5, TIB))]
    )
    assert gain is not None
    assert (gain.num_tables, gain.files, gain.size_bytes) == (1, (14, 5), (5 * TIB, TIB))
    assert tuple(gain_tiles(gain, NOTHING)) == (
        ("14 \u2192 5", "files that a sample query reads on average, before and after the newest Z-order", Role.GOOD),
    )
    two = layout_gain([turned("a", (3.5, 2), (3.5, 2)), turned("b", (1, 1), (1, 1))])
    what = "files that a sample query reads on average, before and after the newest Z-order of 2 tables"
    assert tuple(gain_tiles(two, NOTHING)) == (("4.5 \u2192 4.5", what, None),)
    assert layout_gain([samples.good_run().tables[1]]) is None


def test_money_stands_with_its_formula() -> None:
    gain = layout_gain([turned("a", (30, 9 * GIB), (5, GIB))])
    work = deleting(3, 100 * GIB)
    run = replace(samples.good_run(), duration_seconds=1800.0)
    priced = texts(amounts(Prices("EUR", 5.0, 0.02, 3.0), gain, work, (run, run)))
    assert [(row[0], row[2]) for row in priced] == [
        (f"{1000 * 8 / 1024 * 5:,.2f} EUR", "1,000 queries \u00d7 (9 GiB \u2212 1 GiB) \u00d7 5 EUR a TiB scanned"),
        ("2.00 EUR", "100 GiB deleted \u00d7 0.02 EUR a GiB and month"),
        ("3.00 EUR", "1.00 hours of 2 runs \u00d7 3 EUR an hour"),
    ]
    (more,) = texts(amounts(Prices("EUR", 5.0), layout_gain([turned("a", (30, GIB), (5, 2 * GIB))]), work, ()))
    assert more[:2] == (f"{1000 / 1024 * 5:,.2f} EUR", "more for 1,000 typical queries")
    small = amounts(Prices("", None, 0.02, None), None, deleting(3, 1), ())
    assert [row[0] for row in texts(small)] == ["less than 0.01"]


def test_requests_to_stores_cost_what_each_run_recorded() -> None:
    asked = RunRequests(StoreRequests(reads=900_000), StoreRequests(lists=100_000), 0.86, "EUR")
    runs = (replace(samples.good_run(), requests=asked), replace(samples.good_run(), requests=replace(asked, cost=0.1)))
    (row,) = texts(amounts(Prices("EUR"), None, NOTHING, (*runs, samples.good_run())))
    assert row == (
        "0.96 EUR",
        "for requests to stores, spent",
        "2,000,000 requests until the records were closed, each run at its prices",
    )
    others = (*runs, replace(samples.good_run(), requests=replace(asked, currency="USD")))
    assert texts(amounts(Prices("EUR"), None, NOTHING, others)) == [row], "amounts of two currencies have no sum"
    assert not texts(amounts(Prices("EUR"), None, NOTHING, (replace(runs[0], requests=replace(asked, cost=None)),)))


def test_without_prices_or_figures_there_is_no_amount() -> None:
    runs: tuple[RunOutcome, ...] = (samples.good_run(),)
    assert not texts(amounts(Prices(), layout_gain([turned("a", (3, 3), (1, 1))]), NOTHING, runs))
    assert not texts(amounts(Prices("EUR", 5.0, 0.02, None), None, NOTHING, runs))


def test_a_full_zorder_has_a_gain_of_its_own_scale() -> None:
    table = samples.good_run().tables[0]
    change = LayoutChange(LayoutFigures(30.0, 9 * TIB, 3.0, 1.0), LayoutFigures(5.0, 2 * TIB, 1.0, 0.0))
    gain = layout_gain([replace(table, steps=(replace(table.steps[0], layout=change),))])
    assert gain is not None
    assert (gain.files, gain.size_bytes) == ((30.0, 5.0), (9 * TIB, 2 * TIB))


@pytest.mark.parametrize(
    ("vacuum", "deleted", "moved"),
    [
        (VacuumReceipt(2310, 41 * GIB), (2310, 41 * GIB), (0, 0)),
        (VacuumReceipt(2310, 41 * GIB, trash="/lake/.maintainer-trash/t/r"), (0, 0), (2310, 41 * GIB)),
        (
            VacuumReceipt(5, GIB, trash="/t", num_files_emptied=2310, bytes_emptied=41 * GIB),
            (2310, 41 * GIB),
            (5, GIB),
        ),
    ],
    ids=["deleted", "moved", "moved while older ones leave the trash"],
)
def test_what_lies_in_the_trash_still_takes_room(
    vacuum: VacuumReceipt, deleted: tuple[int, int], moved: tuple[int, int]
) -> None:
    work = WorkDone((replace(samples.vacuum_done(), vacuum=vacuum),))
    assert ((work.files_deleted, work.bytes_deleted), (work.files_moved, work.bytes_moved)) == (deleted, moved)
    spared = amounts(Prices("EUR", None, 0.02, None), None, work, ())
    assert [row[0] for row in texts(spared)] == ([f"{41 * 0.02:,.2f} EUR"] if deleted[0] else [])
    tiles = [what.partition(" in ")[0] for _, what, _ in gain_tiles(None, work)]
    assert tiles == ["deleted"] * bool(deleted[0]) + ["moved to the trash"] * bool(moved[0])
