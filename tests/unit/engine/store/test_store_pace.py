"""What a store refuses because it is too much slows all threads of the process down, once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from maintainer.engine.store import store_pace
from maintainer.engine.store.store_clients import OF_THE_STATE
from maintainer.engine.store.store_failures import BUSY, REFUSED, UNREACHABLE, StoreFailure
from maintainer.engine.store.store_pace import StorePace
from maintainer.model.table.store_requests import StoreRequests

ONE = StoreRequests(reads=1)
ABREAST = 16


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_pace, "FIRST_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(store_pace, "LONGEST_PAUSE_SECONDS", 0.4)


class Store:
    """Answers so many requests at once; refuses more, or all of them until it is well."""

    def __init__(self, at_once: int, well_in_seconds: float = 0.0) -> None:
        self.at_once, self.well_at = at_once, time.monotonic() + well_in_seconds
        self.lock = threading.Lock()
        self.now = self.most = self.refused = self.asked = 0

    def ask(self) -> int:
        with self.lock:
            self.now += 1
            self.asked += 1
            self.most = max(self.most, self.now)
            too_much = self.now > self.at_once or time.monotonic() < self.well_at
        time.sleep(0.005)
        with self.lock:
            self.now -= 1
            self.refused += too_much
        if too_much:
            raise StoreFailure(BUSY, "SlowDown")
        return 7


def _all(pace: StorePace, ask: Callable[[], int], number: int) -> list[int]:
    with ThreadPoolExecutor(64) as threads:
        return list(threads.map(lambda _: pace.asked(ask, ONE), range(number)))


def test_no_more_than_the_bound_wait_for_an_answer() -> None:
    store = Store(at_once=1000)
    assert _all(StorePace(ABREAST, 1.0), store.ask, 200) == [7] * 200
    assert store.most <= ABREAST
    assert store.refused == 0


def test_one_refusal_holds_all_back() -> None:
    """Each of 16 that were sent together is refused; then none comes until the pause is over, and then fewer."""
    store = Store(at_once=1000, well_in_seconds=0.09)
    assert _all(StorePace(ABREAST, 5.0), store.ask, 100) == [7] * 100
    assert 0 < store.refused <= ABREAST, store.refused


def test_requests_settle_at_what_the_store_bears(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_pace, "FIRST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(store_pace, "LONGEST_PAUSE_SECONDS", 0.04)
    store = Store(at_once=4)
    assert _all(StorePace(ABREAST, 30.0), store.ask, 300) == [7] * 300
    assert store.refused < 150, store.refused


def test_a_store_that_stays_busy_ends_the_request() -> None:
    store = Store(at_once=0)
    with pytest.raises(StoreFailure) as failure:
        StorePace(ABREAST, 0.5).asked(store.ask, ONE)
    assert failure.value.code == BUSY
    assert 2 <= store.asked <= 6


def test_what_is_refused_for_another_reason_is_not_repeated() -> None:
    asked: list[str] = []

    def refused() -> None:
        asked.append("once")
        raise StoreFailure(REFUSED, "AccessDenied")

    with pytest.raises(StoreFailure):
        StorePace(ABREAST, 5.0).asked(refused, ONE)
    assert asked == ["once"]


def test_a_lost_answer_is_asked_for_once_more() -> None:
    asked: list[str] = []

    def lost() -> None:
        asked.append("once")
        raise StoreFailure(UNREACHABLE, "closed", gave_no_answer=True)

    with pytest.raises(StoreFailure):
        StorePace(ABREAST, 5.0).asked(lost, ONE)
    assert len(asked) == store_pace.SILENT_TRIES


def test_a_request_that_ends_badly_gives_its_place_back() -> None:
    pace = StorePace(1, 1.0)

    def broken() -> None:
        raise OSError("no space left on device")

    for _ in range(3):
        with pytest.raises(OSError, match="no space"):
            pace.asked(broken, ONE)
    assert pace.asked(lambda: 1, ONE) == 1


@pytest.mark.parametrize(
    "failure", [StoreFailure(BUSY, "SlowDown"), StoreFailure(UNREACHABLE, "", gave_no_answer=True)]
)
def test_the_store_of_a_state_is_not_asked_more_often_than_obstore_does(failure: StoreFailure) -> None:
    asked: list[str] = []

    def failing() -> None:
        asked.append("once")
        raise failure

    with pytest.raises(StoreFailure):
        StorePace(ABREAST, OF_THE_STATE.paced_seconds).asked(failing, ONE)
    assert asked == ["once"]
