"""A session that skips files which it cannot read would lose their rows in a rewrite, and nothing would show it."""

from __future__ import annotations

import pytest

from maintainer.delta.transaction.requirements import UNSAFE_READS, refuse_unsafe_reads
from maintainer.errors import EnvironmentUnfit


@pytest.mark.parametrize("key", UNSAFE_READS)
@pytest.mark.parametrize("value", ["true", True, "TRUE"])
def test_it_is_refused(key: str, value: object) -> None:
    with pytest.raises(EnvironmentUnfit) as caught:
        refuse_unsafe_reads({key: value}.get, "t", "rows would be lost")
    assert (caught.value.code, caught.value.help) == ("E606", f"set {key}=false")


def test_another_session_is_not() -> None:
    refuse_unsafe_reads(dict.fromkeys(UNSAFE_READS, "false").get, "t", "rows would be lost")
    refuse_unsafe_reads(dict[str, str]().get, "t", "rows would be lost")
