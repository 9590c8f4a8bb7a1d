"""What holds for all tests: none fails because the machine is slow at that moment."""

from __future__ import annotations

import inspect
import os
import signal

import hypothesis
import pytest

from sprocket.client.config import (
    ClientConfig,
    ConsumerConfig,
    LitePullConfig,
    ProducerConfig,
    PullConfig,
)
from tests.certificates import OPENSSL, Authority
from tests.support import PATIENT_MS
from tests.time_limits import pytest_runtest_setup, pytest_runtest_teardown, pytest_unconfigure

__all__ = ["pytest_runtest_setup", "pytest_runtest_teardown", "pytest_unconfigure"]

hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")

# A shell has what it starts in the background ignore Ctrl-C, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_KINDS = ("java", "process", "spark")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores, since tests with Java mostly wait for it; at most
    four, since more Spark sessions and Java brokers need much memory."""
    return min(4, (os.cpu_count() or 1) + 1)


@pytest.fixture(autouse=True)
def patient_clients(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where servers and time are real, no client gives up, or sends once more, after 3 seconds."""
    if not any(request.node.get_closest_marker(kind) for kind in _KINDS):
        return
    for config in (ClientConfig, ProducerConfig, ConsumerConfig, PullConfig, LitePullConfig):
        made = vars(config)["__init__"]
        defaults = tuple(
            PATIENT_MS if parameter.name in ("call_timeout_ms", "send_timeout_ms") else value
            for parameter in inspect.signature(made).parameters.values()
            if (value := parameter.default) is not parameter.empty
        )
        monkeypatch.setattr(made, "__defaults__", defaults)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority whose certificates a test may have."""
    if OPENSSL is None:
        pytest.skip("the command openssl, which makes certificates, is missing")
    return Authority(tmp_path_factory.mktemp("authority"))
