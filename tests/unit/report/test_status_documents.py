"""Status for Prometheus: one gauge a figure, nothing made up, labels that no name can break."""

from __future__ import annotations

import re

from maintainer.model.run.history_rows import StatusRow
from maintainer.report.status_documents import STATES, status_prometheus

SAMPLE = re.compile(r'[a-z_]+(\{table="(?:[^"\\\n]|\\.)*",owner="(?:[^"\\\n]|\\.)*"(,state="[a-z]+")?\})? -?[0-9.e+-]+')

ROWS = [
    StatusRow(
        "sales.orders", "due", 3, 12, 1 << 40, 7, 1_795_000_000_000, None, None, "pass", 1_795_000_000_500, owner="team"
    ),
    StatusRow('evil"\n\\} 1', "problem", owner='o"'),
]  # fmt: skip


def test_figures_and_what_is_unknown() -> None:
    lines = status_prometheus(ROWS, 1_795_000_001_000).splitlines()
    assert 'maintainer_table_bytes{table="sales.orders",owner="team"} 1099511627776' in lines
    assert 'maintainer_table_last_proof_timestamp_seconds{table="sales.orders",owner="team"} 1795000000.5' in lines
    assert 'maintainer_table_last_proof_ok{table="sales.orders",owner="team"} 1' in lines
    assert 'maintainer_table_state{table="sales.orders",owner="team",state="due"} 1' in lines
    assert 'maintainer_table_state{table="sales.orders",owner="team",state="ok"} 0' in lines
    assert "maintainer_status_timestamp_seconds 1795000001" in lines
    # Nobody vacuumed, and the other table could not be read: no sample, not a 0.
    assert not [line for line in lines if line.startswith("maintainer_table_last_vacuum_timestamp_seconds{")]
    assert sum(line.startswith("maintainer_table_files{") for line in lines) == 1
    assert sum(line.startswith("maintainer_table_state{") for line in lines) == 2 * len(STATES)


def test_every_line_is_of_the_format_whatever_a_table_is_called() -> None:
    text = status_prometheus(ROWS, 1)
    assert text.endswith("\n")
    kinds = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")]
    assert len(kinds) == len(set(kinds)) == 12
    for line in text.splitlines():
        assert line.startswith("# ") or SAMPLE.fullmatch(line), line
    assert 'table="evil\\"\\n\\\\} 1"' in text
