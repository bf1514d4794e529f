"""A property that is computed once for each object: what functools' own does wrong before Python 3.12."""

from __future__ import annotations

import threading

from maintainer.model.cached_property import cached_property

TIMEOUT_SECONDS = 30


class Session:
    """Two of them need each other's property, as a worker that tests the JVM for all opens a session of its own."""

    def __init__(self) -> None:
        self.others: list[Session] = []
        self.met = threading.Barrier(2, timeout=TIMEOUT_SECONDS)
        self.computed: list[str] = []

    @cached_property
    def first(self) -> str:
        """Meets the other thread."""
        self.computed.append("first")
        self.met.wait()
        return "first and " + (self.others[0].second if self.others else "no other")

    @cached_property
    def second(self) -> str:
        self.computed.append("second")
        self.met.wait()
        return "second and " + (self.others[0].first if self.others else "no other")


def test_two_objects_that_need_each_other_do_not_wait_for_ever() -> None:
    one, two, three = Session(), Session(), Session()
    one.met = two.met = threading.Barrier(2, timeout=TIMEOUT_SECONDS)
    three.met = threading.Barrier(1)
    one.others, two.others = [three], [three]
    answers: dict[str, str] = {}
    threads = [
        threading.Thread(target=lambda: answers.update(one=one.first), daemon=True),
        threading.Thread(target=lambda: answers.update(two=two.second), daemon=True),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_SECONDS)
    assert answers == {"one": "first and second and no other", "two": "second and first and no other"}


def test_it_is_computed_once_and_threads_at_once_get_one_object() -> None:
    class Place:
        met = threading.Barrier(2, timeout=TIMEOUT_SECONDS)

        @cached_property
        def value(self) -> object:
            """What it is."""
            self.met.wait()
            return object()

    place, got = Place(), list[object]()
    threads = [threading.Thread(target=lambda: got.append(place.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_SECONDS)
    assert got[0] is got[1] is place.value
    assert Place.value.__doc__ == "What it is."
