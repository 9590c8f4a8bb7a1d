"""The units of `deploy/systemd` are right in systemd's eyes, confined, and run what there is."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sprocket.broker.config import BrokerConfig
from sprocket.nameserver.config import NameServerConfig
from sprocket.proxy.config import ProxyConfig
from tests.packaging.commands import check_command
from tests.packaging.distributions import ROOT

FOLDER = ROOT / "deploy" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
#: What `systemd-analyze security` may say of a unit, from 0 (confined) to 10; its own word up to 2
#: is OK.
EXPOSURE_MAX = 2.0

systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not on this machine"
)


def service(unit: Path) -> dict[str, str]:
    parsed = configparser.ConfigParser(strict=False, interpolation=None, comment_prefixes=("#",))
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read(unit)
    return dict(parsed["Service"])


def analyzed(*words: str) -> str:
    done = subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr


def test_there_are_units() -> None:
    assert [each.name for each in UNITS] == [
        "sprocket-broker@.service", "sprocket-console.service", "sprocket-nameserver.service",
        "sprocket-proxy.service",
    ]  # fmt: skip


@systemd
def test_systemd_finds_nothing_wrong_with_them(tmp_path: Path) -> None:
    """The program is not installed here; another stands for it."""
    for unit in UNITS:
        text = unit.read_text().replace("/opt/sprocket/bin/sprocket", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    copies = sorted(str(each) for each in tmp_path.iterdir())
    assert analyzed("verify", "--man=no", *copies) == ""


@systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_they_are_confined(unit: Path) -> None:
    said = analyzed("security", "--offline=true", "--no-pager", str(unit))
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
    if found is None:
        pytest.skip(f"this systemd-analyze does not judge files: {said[:200]}")
    assert float(found[1]) <= EXPOSURE_MAX


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_they_run_commands_that_exist_as_a_user_of_their_own(unit: Path) -> None:
    told = service(unit)
    program, *words = told["ExecStart"].split()
    assert program == "/opt/sprocket/bin/sprocket"
    check_command(words)
    assert told["Type"] == "notify"
    assert told["User"] in (FOLDER / "sprocket.sysusers").read_text().split()


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_they_are_given_more_time_to_stop_than_they_take(unit: Path) -> None:
    drained = max(kind().drain_ms for kind in (BrokerConfig, NameServerConfig, ProxyConfig))
    assert float(service(unit)["TimeoutStopSec"].removesuffix("s")) >= 2 * drained / 1000


def test_a_broker_may_recover_for_as_long_as_it_takes() -> None:
    assert service(FOLDER / "sprocket-broker@.service")["TimeoutStartSec"] == "infinity"
