"""One call beside the caller: its result, what it raises, and a caller who does not wait for it."""

from __future__ import annotations

import threading
from concurrent.futures import wait

import pytest

from maintainer.engine.side_call import side_call


def test_a_call_has_its_result_or_what_it_raised() -> None:
    assert side_call(lambda: threading.current_thread().name, "aside").result(10) == "aside"
    for error in (KeyError("x"), SystemExit(3)):

        def fail(error: BaseException = error) -> None:
            raise error

        with pytest.raises(type(error)) as caught:
            side_call(fail, "aside").result(10)
        assert caught.value is error


def test_a_call_that_hangs_holds_up_neither_the_caller_nor_the_end_of_the_process() -> None:
    go = threading.Event()
    call = side_call(lambda: go.wait(20), "hangs")
    assert not wait([call], 0.01).done
    assert [thread.daemon for thread in threading.enumerate() if thread.name == "hangs"] == [True]
    go.set()
    assert call.result(10)
