"""Hypothesis profiles: ``ci``, the default, runs the same examples every time.

``HYPOTHESIS_PROFILE=dev`` looks for new ones at each run.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No deadline: on a shared machine it would measure the neighbours.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
