"""The image's file and the compose file: what they run exists, nothing runs as root."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from sprocket.broker.config import BrokerConfig
from tests.cli.parts import sprocket
from tests.packaging.commands import check_command
from tests.packaging.distributions import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: it is in the extra dev")

DOCKERFILE = ROOT / "deploy" / "container" / "Dockerfile"
COMPOSE = ROOT / "deploy" / "compose" / "compose.yaml"


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the image's file with its words."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(name, words) for name, _, words in (line.partition(" ") for line in text.splitlines())]


def of(name: str) -> list[str]:
    return [words.strip() for each, words in instructions() if each == name]


#: It comes as a package too, and is then beside this Python.
HADOLINT = shutil.which(
    "hadolint", path=os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
)


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not here: it is in the extra deploy")
def test_hadolint_finds_nothing() -> None:
    assert HADOLINT is not None
    done = subprocess.run([HADOLINT, str(DOCKERFILE)], capture_output=True, text=True)
    assert done.stdout == ""
    assert done.returncode == 0


def test_the_image_runs_as_a_number_that_is_not_root() -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", of("USER")[-1])


def test_the_last_stage_has_neither_compiler_nor_pip() -> None:
    last = DOCKERFILE.read_text().rpartition("\nFROM ")[2]
    assert "pip" not in last
    assert "apt-get" not in DOCKERFILE.read_text()
    assert "--only-binary=:all:" in DOCKERFILE.read_text()


def test_it_takes_only_extras_that_exist_and_files_that_the_context_has() -> None:
    import tomllib

    extras = next(words for words in of("ARG") if words.startswith("EXTRAS=")).partition("=")[2]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    allowed = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    ]
    arguments = own()["console"]["build"]["args"]
    assert set(arguments["EXTRAS"].split(",")) <= set(project["optional-dependencies"])
    for words in of("COPY"):
        if "--from" not in words:
            for name in words.split()[:-1]:
                assert (ROOT / name).exists()
                assert any(fnmatch.fnmatch(name, each) for each in allowed), name


def test_its_health_check_asks_a_page_that_there_is_at_the_port_that_it_sets() -> None:
    from sprocket.metrics import pages

    (check,) = of("HEALTHCHECK")
    (path,) = re.findall(r"'(/health/\w+)'", check)
    assert path in Path(pages.__file__).read_text()
    settings = dict(part.partition("=")[::2] for part in shlex.split(" ".join(of("ENV"))))
    settings.pop("PATH")
    environment = {name: value for name, value in settings.items() if name.startswith("SPROCKET_")}
    shown = sprocket("config", "show", **environment)
    assert shown.code == 0, shown.err
    assert re.search(r"metrics\.exporter +PROM", shown.out)
    assert "SPROCKET_METRICS_PORT" in environment


def composed() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return found


def own() -> dict[str, Any]:
    """The services that run our image."""
    return {
        name: each
        for name, each in composed()["services"].items()
        if each["image"] in ("sprocket", "sprocket-console")
    }


def test_the_services_are_there() -> None:
    assert composed()["services"].keys() == {
        "sprocket", "nameserver-1", "nameserver-2", "etcd", "broker-1", "broker-2", "broker-3",
        "proxy", "console", "prometheus", "grafana",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(own()))
def test_a_service_of_ours_runs_a_command_that_exists_with_settings_that_are_right(
    name: str,
) -> None:
    service = own()[name]
    words = service["command"]
    if words != ["--help"]:
        check_command(words)
    environment = {key: str(value) for key, value in service.get("environment", {}).items()}
    done = sprocket("config", "show", **environment)
    assert done.code == 0, done.err
    assert "SPROCKET_" not in done.err
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]


def test_members_of_the_group_differ_in_their_address_and_disk_only() -> None:
    brokers = [own()[f"broker-{number}"] for number in (1, 2, 3)]
    assert len({each["environment"]["SPROCKET_BROKER_ADVERTISED_HOST"] for each in brokers}) == 3
    assert len({each["volumes"][0] for each in brokers}) == 3
    assert {each["environment"]["SPROCKET_BROKER_NAME"] for each in brokers} == {"broker-a"}


def test_they_are_given_more_time_to_stop_than_they_take() -> None:
    for service in own().values():
        seconds = float(service["stop_grace_period"].removesuffix("s"))
        assert seconds >= 2 * BrokerConfig().drain_ms / 1000


def test_files_that_are_mounted_exist_and_volumes_are_declared() -> None:
    whole = composed()
    for service in whole["services"].values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (COMPOSE.parent / source).exists(), source
            else:
                assert source in whole["volumes"]


def test_images_of_others_are_of_one_version_and_ports_are_only_this_machine_s() -> None:
    for name, service in composed()["services"].items():
        if name not in own():
            assert re.search(r":v?\d+\.\d+\.\d+$", service["image"]), service["image"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_prometheus_reads_every_server() -> None:
    config = yaml.safe_load((COMPOSE.parent / "prometheus.yaml").read_text())
    (job,) = config["scrape_configs"]
    targets = job["static_configs"][0]["targets"]
    assert targets == [f"{name}:5557" for name in own() if name not in ("sprocket", "console")]


def test_compose_takes_the_file(tmp_path: Path) -> None:
    """Version 1 does not know `name`, which a file may have since version 2."""
    if shutil.which("docker") and _has_compose():
        command, text = ["docker", "compose"], COMPOSE.read_text()
    elif shutil.which("docker-compose"):
        command = ["docker-compose"]
        text = re.sub(r"^name: .*\n", "", COMPOSE.read_text(), flags=re.MULTILINE)
    else:
        pytest.skip("neither docker compose nor docker-compose is on this machine")
    file = tmp_path / "compose.yaml"
    file.write_text(text)
    done = subprocess.run(
        [*command, "-f", str(file), "config", "-q"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def _has_compose() -> bool:
    return subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
