"""The requests that a run records are those that a relay before the store saw, and about those that its plan says."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.product import StoreRequests
from tests.support.stores.counting_relay import Request, counting_relay
from tests.support.stores.s3_projects import SETTINGS, make_project
from tests.support.stores.s3_server import s3_server
from tests.support.suites.marked_apply import MARK, URL_VARIABLE

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.long]

POLICIES = {
    "compacted": "optimize: {}",
    "ordered": "optimize: {zorder: {columns: [id]}}",
    "vacuumed": "vacuum: {retention: 1s, allowShortRetention: true, allowLargeDelete: true}",
}
SIGN_OF_LIFE = Request("HEAD", "/")
"""Asks without keys whether somebody listens at the store's address."""

BOUND = 0.2
"""How far a plan may be off, as a share of what was asked."""

MAX_TO_PUBLISH = 40
"""Requests that publish the record once it is closed, about 30; beside them one list a table."""


def by_kind(requests: Iterable[Request]) -> StoreRequests:
    counted = Counter(request.kind for request in requests)
    return StoreRequests(
        counted["GET"], counted["HEAD"], counted["LIST"], counted["PUT"] + counted["POST"],
        counted["DELETE"] + counted["POST delete"],
    )  # fmt: skip


def test_a_run_that_compacts_orders_and_vacuums_records_what_the_store_was_asked(tmp_path: Path) -> None:
    with (
        s3_server("lake") as server,
        counting_relay(urlsplit(server.own_url).port or 0, tmp_path / "requests.txt") as relay,
    ):
        project = make_project(tmp_path, server, POLICIES, settings=SETTINGS.replace("{url}", relay.url))
        for name in POLICIES:
            project.append(name, 12, **{"delta.deletedFileRetentionDuration": "interval 1 second"})
        project.table("vacuumed").optimize.compact()
        for name in POLICIES:
            project.table(name).create_checkpoint()
            project.append(name, 1)
        time.sleep(11)  # until then no checksum file is written, and Delta reads each commit twice
        relay.clear()
        done = project.process(
            "tests.support.suites.marked_apply", "--project", str(project.root), "apply", "--yes", "-o", "json",
            **{URL_VARIABLE: relay.url},
        )  # fmt: skip
        assert done.returncode == 0, done.err
        seen = relay.requests()
    at = next(number for number, request in enumerate(seen) if request.name.endswith(MARK))
    recorded = json.loads(done.out)["requests"]
    ours, hadoops = StoreRequests(**recorded["ours"]), StoreRequests(**recorded["hadoops"])
    assert min(ours.total, hadoops.total) > 0
    assert ours + hadoops == by_kind(request for request in seen[:at] if request != SIGN_OF_LIFE)
    assert abs(recorded["expected"] / (ours + hadoops).total - 1) < BOUND, recorded
    later = seen[at + 1 :]
    of_tables = [request for request in later if "_maintainer/" not in request.name and request.kind != "POST delete"]
    assert by_kind(of_tables) == StoreRequests(lists=len(POLICIES)), of_tables
    assert len(later) - len(of_tables) <= MAX_TO_PUBLISH, by_kind(later)
