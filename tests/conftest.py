"""Hypothesis profiles, cells of matrices that are drawn, and the summary at the end.

Profile ``ci``, the default, runs the same few examples every time, ``whole`` the same many, ``dev`` as many new ones.
"""

from __future__ import annotations

import gc
import os
import time

from hypothesis import HealthCheck, settings

from tests.support.suites.example_counts import PROFILE, examples
from tests.support.suites.first_difference import pytest_assertrepr_compare
from tests.support.suites.one_session import lease
from tests.support.suites.suite_summary import (
    pytest_collection_modifyitems,
    pytest_deselected,
    pytest_report_header,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
)

__all__ = [
    "lease",
    "pytest_assertrepr_compare",
    "pytest_collection_modifyitems",
    "pytest_deselected",
    "pytest_report_header",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "pytest_testnodedown",
]

# Far from UTC, and by half an hour: what takes the machine's zone for UTC is seen in every run.
os.environ.setdefault("TZ", "America/St_Johns")
time.tzset()


def pytest_collection_finish() -> None:
    """Let Python look no more through ten thousand collected tests whenever it looks for what can go."""
    gc.collect()
    gc.freeze()


# No deadline: on a shared machine it would measure the neighbours.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("whole", parent=settings.get_profile("dev"), derandomize=True, database=None)
settings.register_profile("ci", parent=settings.get_profile("whole"), max_examples=examples(100))
settings.load_profile(PROFILE)
