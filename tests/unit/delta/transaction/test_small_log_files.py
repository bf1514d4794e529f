"""Which tables have their checkpoints written through Kernel, and when one is due."""

from __future__ import annotations

from typing import Any

import pytest

from maintainer.delta.transaction.small_log_files import MAX_FILES, interval_of, is_kernels


def metadata(**configuration: str) -> dict[str, Any]:
    return {"configuration": {key.replace("__", "."): value for key, value in configuration.items()}}


@pytest.mark.parametrize(
    ("configuration", "features", "num_files", "expected"),
    [
        ({}, None, 1, True),
        ({"delta__enableChangeDataFeed": "true"}, ["changeDataFeed", "deletionVectors"], MAX_FILES, True),
        ({}, None, MAX_FILES + 1, False),
        ({}, None, None, False),
        ({"delta__checkpointPolicy": "classic"}, None, 1, False),
        ({"delta__checkpoint__writeStatsAsStruct": "false"}, None, 1, False),
        ({}, ["v2Checkpoint"], 1, False),
        ({}, ["inCommitTimestamp"], 1, False),
        ({}, ["a feature of tomorrow"], 1, False),
    ],
)
def test_small_plain_tables_are_kernels(
    configuration: dict[str, str], features: list[str] | None, num_files: int | None, expected: bool
) -> None:
    protocol = {"minWriterVersion": 7, "writerFeatures": features}
    assert is_kernels(metadata(**configuration), protocol, num_files) is expected


def test_the_interval_is_the_tables() -> None:
    assert interval_of(metadata()) == 10
    assert interval_of(metadata(delta__checkpointInterval="3")) == 3
    assert interval_of(metadata(delta__checkpointInterval="-3")) == 0
