"""Each test asks anew: what an earlier one heard at a port is no answer of the server that has the port now."""

from __future__ import annotations

import pytest

from maintainer.delta.engine import catalog_names, endpoint_probe


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    for known in ("_silences", "_answers", "_first_contacts"):
        monkeypatch.setattr(catalog_names, known, {})
    monkeypatch.setattr(endpoint_probe, "_probes", {})
