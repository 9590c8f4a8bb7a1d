"""The manifests of `deploy/kubernetes` are right in Kubernetes' eyes, and fit together."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from typing import Any

import pytest

from sprocket.broker.config import BrokerConfig
from sprocket.metrics import pages
from sprocket.proxy.config import ProxyConfig
from tests.cli.parts import sprocket
from tests.packaging.commands import check_command
from tests.packaging.distributions import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: it is in the extra dev")

FOLDER = ROOT / "deploy" / "kubernetes"
#: The oldest and the newest Kubernetes that is asked about, as far as the schemas are there.
VERSIONS = ("1.31", "1.34")


def manifests() -> list[dict[str, Any]]:
    names = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    assert {*names, "kustomization.yaml"} == {each.name for each in FOLDER.iterdir()}
    return [each for name in names for each in yaml.safe_load_all((FOLDER / name).read_text())]


def of(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in manifests() if each["kind"] == kind}


WORKLOADS = {**of("StatefulSet"), **of("Deployment")}


def pod(name: str) -> dict[str, Any]:
    found: dict[str, Any] = WORKLOADS[name]["spec"]["template"]["spec"]
    return found


def container(name: str) -> dict[str, Any]:
    (found,) = pod(name)["containers"]
    return dict(found)


@pytest.mark.skipif(
    importlib.util.find_spec("kubernetes_validate") is None,
    reason="kubernetes-validate is not installed: it is in the extra deploy",
)
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_every_field(version: str) -> None:
    import kubernetes_validate

    for each in manifests():
        kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on this machine")
def test_kubectl_builds_the_base() -> None:
    built = subprocess.run(["kubectl", "kustomize", str(FOLDER)], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    kinds = sorted(each["kind"] for each in yaml.safe_load_all(built.stdout))
    assert kinds == sorted([each["kind"] for each in manifests()] + ["ConfigMap", "ConfigMap"])
    images = set(re.findall(r"image: (\S+)", built.stdout))
    from sprocket import __version__

    assert images == {f"sprocket:{__version__}"}


def test_the_workloads_are_there() -> None:
    assert set(of("StatefulSet")) == {"sprocket-nameserver", "sprocket-broker"}
    assert set(of("Deployment")) == {"sprocket-proxy"}


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_services_and_budgets_are_about_its_pods(name: str) -> None:
    spec = WORKLOADS[name]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert of("Service")[name]["spec"]["selector"].items() <= labels.items()
    budget = of("PodDisruptionBudget")[name]["spec"]
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    assert budget["maxUnavailable"] == 1 < spec["replicas"]
    ports = {each["name"] for each in container(name)["ports"]}
    assert {each["targetPort"] for each in of("Service")[name]["spec"]["ports"]} <= ports


def test_stateful_sets_have_a_service_without_an_address_that_shows_all_pods() -> None:
    for each in of("StatefulSet").values():
        service = of("Service")[each["spec"]["serviceName"]]["spec"]
        assert service["clusterIP"] == "None"
        assert service["publishNotReadyAddresses"]


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_probes_ask_pages_that_there_are(name: str) -> None:
    from pathlib import Path

    served = Path(pages.__file__).read_text()
    own = container(name)
    for kind, page in (("startup", "live"), ("liveness", "live"), ("readiness", "ready")):
        asked = own[f"{kind}Probe"]["httpGet"]
        assert asked == {"path": f"/health/{page}", "port": "health"}
        assert f'"{asked["path"]}"' in served
    assert {"name": "health", "containerPort": 5557} in own["ports"]


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_it_has_more_time_to_stop_than_it_takes(name: str) -> None:
    deadline_ms = {"sprocket-broker": BrokerConfig, "sprocket-proxy": ProxyConfig}.get(
        name, BrokerConfig
    )().drain_ms
    assert pod(name)["terminationGracePeriodSeconds"] >= 5 * deadline_ms / 1000


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_it_is_confined_and_gets_no_variables_that_it_would_take_for_settings(name: str) -> None:
    assert pod(name)["enableServiceLinks"] is False
    assert pod(name)["automountServiceAccountToken"] is False
    assert pod(name)["securityContext"]["runAsNonRoot"]
    user = f"{pod(name)['securityContext']['runAsUser']}:"
    image = (ROOT / "deploy" / "container" / "Dockerfile").read_text()
    assert f"\nUSER {user}" in image
    own = container(name)["securityContext"]
    assert own["readOnlyRootFilesystem"]
    assert not own["allowPrivilegeEscalation"]
    assert own["capabilities"]["drop"] == ["ALL"]


def test_a_variable_of_a_service_would_have_been_taken_for_a_setting() -> None:
    """Why `enableServiceLinks` is false."""
    shown = sprocket("config", "show", SPROCKET_PROXY_PORT="tcp://10.0.0.1:8081")
    assert shown.code != 0


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_it_runs_a_command_that_exists_with_settings_that_are_right(name: str) -> None:
    own = container(name)
    check_command(own["args"])
    generated = {
        each["name"]: dict(literal.split("=", 1) for literal in each["literals"])
        for each in yaml.safe_load((FOLDER / "kustomization.yaml").read_text())[
            "configMapGenerator"
        ]
    }
    environment: dict[str, str] = {}
    for each in own.get("envFrom", ()):
        environment |= generated[each["configMapRef"]["name"]]
    for each in own.get("env", ()):
        if "value" in each:
            value = each["value"].replace("$(POD)", f"{name}-0").replace("$(NAMESPACE)", "sprocket")
            environment[each["name"]] = value
    shown = sprocket("config", "show", **environment)
    assert shown.code == 0, shown.err
    assert "SPROCKET_" not in shown.err


def test_members_of_a_group_are_on_machines_of_their_own_and_are_updated_when_they_caught_up() -> (
    None
):
    spec = of("StatefulSet")["sprocket-broker"]["spec"]
    rules = pod("sprocket-broker")["affinity"]["podAntiAffinity"]
    (rule,) = rules["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["minReadySeconds"] * 1000 >= BrokerConfig().copies_behind_ms
    assert spec["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Retain", "whenScaled": "Retain",
    }  # fmt: skip
