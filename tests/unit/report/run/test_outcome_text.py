from __future__ import annotations

from dataclasses import replace

from maintainer.model.run.optimize_metrics import FileSizeMetrics, OptimizeMetrics
from maintainer.model.run.outcome import RunOutcome
from maintainer.report.run.outcome_text import MAX_WIDTH, metrics_lines, render_steps
from maintainer.report.run.run_text import render_run
from tests.support.runs.sample_runs import compact_done, good_run, properties_done

REMOVED = FileSizeMetrics(1024, 4096, 2048.5, 1204, 2466394)
METRICS = OptimizeMetrics(
    151,
    1204,
    FileSizeMetrics(10, 20, 15.0, 151, 2265),
    REMOVED,
    3,
    151,
    2,
    1300,
    96,
    1_795_298_400_000,
    1_795_298_675_000,
)


def with_metrics() -> RunOutcome:
    run = good_run()
    table = run.tables[0]
    steps = tuple(replace(step, metrics=METRICS) if step.kind == "compact" else step for step in table.steps)
    return replace(run, tables=(replace(table, steps=steps), *run.tables[1:]))


def test_figures_stand_under_the_names_that_optimize_has_for_them() -> None:
    lines = metrics_lines(replace(compact_done(), metrics=METRICS))
    pairs = dict(pair.split(" ") for line in lines for pair in line.split("   "))
    assert pairs["numFilesAdded"] == "151"
    assert pairs["filesRemoved.avg"] == "2048.5"
    assert pairs["filesRemoved.totalSize"] == "2466394"
    assert (pairs["numBins"], pairs["numBatches"], pairs["totalFilesSkipped"]) == ("151", "2", "96")
    assert "zOrderStats" not in pairs
    assert "preserveInsertionOrder" not in pairs
    assert all(len(line) <= MAX_WIDTH for line in lines)


def test_a_step_that_rewrites_nothing_has_no_figures() -> None:
    assert metrics_lines(properties_done()) == []


def test_show_names_every_step_and_the_end_of_a_run_counts_bins_and_commits() -> None:
    lines = render_steps(with_metrics()).splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert [head.split("  ")[:3] for head in heads] == [
        ["sales.orders", "properties", "OK"],
        ["sales.orders", "compact", "OK"],
        ["sales.orders", "vacuum", "OK"],
    ]
    assert "1,204 -> 151 files" in heads[1]
    assert len(lines) > len(heads)
    assert "in 151 bins and 2 commits" in render_run(with_metrics())
    assert "bins" not in render_run(good_run())
