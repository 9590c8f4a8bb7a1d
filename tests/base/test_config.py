"""Declarations of settings, and the check of values made by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from sprocket.base.config import check, part_of, setting, settings_of
from sprocket.base.errors import ConfigError


@dataclass(frozen=True)
class GateConfig:
    """A part that only this test has."""

    name: str = setting("gate", "What it is called.", rocketmq="gateName")
    port: int = setting(80, "Where it listens.", minimum=0, maximum=65535)
    file_bytes: int = setting(1024, "Size of a file.", rocketmq="mappedSize mapedSize")
    mode: str = setting("ASYNC", "How it flushes.", choices=("ASYNC", "SYNC"))
    ratio: float = setting(0.5, "How full it may be.", minimum=0, maximum=1)
    is_open: bool = setting(True, "Whether it lets in.")
    address: str | None = setting(None, "Where others reach it.")
    nameservers: tuple[str, ...] = setting((), "Whom it tells.")
    not_a_setting: int = 3


def test_a_part_is_called_like_its_class() -> None:
    assert part_of(GateConfig) == "gate"


def test_declarations_tell_everything_about_a_setting() -> None:
    declared = settings_of(GateConfig)
    assert "not_a_setting" not in declared
    assert declared["file_bytes"].rocketmq_names == ["mappedSize", "mapedSize"]
    assert declared["file_bytes"].is_size
    assert not declared["port"].is_size
    assert declared["port"].environment == "SPROCKET_GATE_PORT"
    assert (declared["address"].type, declared["address"].optional) == (str, True)
    assert declared["nameservers"].type is tuple


def test_defaults_pass_the_check() -> None:
    check(GateConfig())


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"port": 65536}, "gate.port is at most 65535, not 65536"),
        ({"port": -1}, "gate.port is at least 0, not -1"),
        ({"port": "80"}, "gate.port takes a whole number, not '80'"),
        ({"port": True}, "gate.port takes a whole number, not True"),
        ({"port": None}, "gate.port needs a value"),
        ({"mode": "SOME"}, "gate.mode is one of ASYNC, SYNC, not 'SOME'"),
        ({"ratio": 1.5}, "gate.ratio is at most 1, not 1.5"),
        ({"is_open": 1}, "gate.is_open takes true or false, not 1"),
        ({"nameservers": ("a", 1)}, "gate.nameservers takes a list of texts, not ('a', 1)"),
    ],
)
def test_a_wrong_value_is_named(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check(GateConfig(**values))
    assert str(raised.value) == text


def test_all_wrong_values_are_named_together() -> None:
    with pytest.raises(ConfigError) as raised:
        check(GateConfig(port=-1, ratio=2))
    assert str(raised.value).split("\n") == [
        "gate.port is at least 0, not -1",
        "gate.ratio is at most 1, not 2",
    ]


@pytest.mark.parametrize("ratio", [float("nan"), float("inf")])
def test_what_is_no_number_is_in_no_bounds(ratio: float) -> None:
    with pytest.raises(ConfigError, match=r"gate\.ratio is at"):
        check(GateConfig(ratio=ratio))


def test_a_size_that_looks_like_mib_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    @dataclass(frozen=True)
    class TankConfig:
        file_bytes: int = setting(1 << 20, "Size of a file.")
        kept_hours: int = setting(72, "How long it is kept.")
        pause_ms: int = setting(5_000, "How long it waits.")

    check(TankConfig())
    check(TankConfig(4096, 720, 100))
    assert not caplog.messages
    check(TankConfig(64, 259_200, 5))
    assert caplog.messages == [
        "tank.file_bytes is 64 bytes: the unit is bytes, not MiB",
        "tank.kept_hours is 29 years: the unit is hours",
        "tank.pause_ms is 5 ms: the unit is milliseconds, not seconds",
    ]


def test_a_secret_is_in_no_message() -> None:
    @dataclass(frozen=True)
    class VaultConfig:
        word: str = setting("x", "The word.", is_secret=True)

    with pytest.raises(ConfigError, match=r"^vault\.word takes text, not \(secret\)$"):
        check(VaultConfig(word=b"hush"))  # type: ignore[arg-type]
