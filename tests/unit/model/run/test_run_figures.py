"""Figures of runs: sums of file sizes and fingerprints, the switch of auto compaction, outcomes as JSON."""

from __future__ import annotations

import json

import pytest

from maintainer.model.run.auto_compaction import SwitchSource, try_switch_of
from maintainer.model.run.optimize_metrics import FileSizeMetrics
from maintainer.model.run.outcome import run_from_json, run_to_json
from maintainer.model.run.receipts import Fingerprint
from tests.support.runs import sample_runs as samples

AUTO = "delta.autoOptimize.autoCompact"


def test_sizes_of_no_files_have_neither_a_smallest_nor_a_largest() -> None:
    empty = FileSizeMetrics.of(())
    assert (empty.min, empty.max, empty.avg, empty.total_files, empty.total_size) == (None, None, 0.0, 0, 0)
    both = FileSizeMetrics.of((1, 8, 3))
    assert (both.min, both.max, both.avg, both.total_files, both.total_size) == (1, 8, 4.0, 3, 12)
    assert empty + both == both + empty == both
    assert empty + empty == empty


def test_fingerprints_add_up_only_with_their_like() -> None:
    assert Fingerprint(1, (2, 3)) + Fingerprint(10, (20, 30)) == Fingerprint(11, (22, 33))
    with pytest.raises(ValueError, match="different kinds"):
        Fingerprint(1, (2, 3)) + Fingerprint(1, (2,))


def test_a_switch_that_cannot_be_read_is_said_in_words() -> None:
    assert try_switch_of(None, {AUTO: "auto"}) == f"{AUTO} is `auto`, neither true nor false"
    switch = try_switch_of("true", {AUTO: "auto"})
    assert not isinstance(switch, str)
    assert (switch.enabled, switch.source) == (True, SwitchSource.SESSION)


def test_an_outcome_is_read_as_it_was_written_on_one_line_or_indented() -> None:
    run = samples.bad_run()
    indented = run_to_json(run)
    assert indented.startswith('{\n  "')
    assert run_from_json(indented) == run_from_json(json.dumps(json.loads(indented))) == run
