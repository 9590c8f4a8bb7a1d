"""What holds for all tests: none fails because the machine is slow at that moment."""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")
