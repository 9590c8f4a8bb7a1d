"""What holds for all tests of histories."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(autouse=True)
def _quiet_logs(caplog: pytest.LogCaptureFixture) -> None:
    """What clients and brokers log about bad weather is no news here, and costs time."""
    caplog.set_level(logging.CRITICAL)
