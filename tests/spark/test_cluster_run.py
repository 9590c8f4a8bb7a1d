"""A real Spark cluster: a master and two workers, each a process of its own, on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.spark.node import Node

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parents[2]
JOB = Path(__file__).with_name("cluster_job.py")
START_S = 240.0
#: Java's better compiler would take longer than it saves here.
SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


class Cluster(NamedTuple):
    master: str
    environment: dict[str, str]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pyspark = pytest.importorskip("pyspark", reason="pip install 'sprocketmq[spark]'")
    from sprocket.base.errors import UsageError
    from sprocket.spark.launching.java import find_java, home_for_spark

    try:
        java = str(home_for_spark(find_java()))
    except UsageError as error:
        pytest.skip(str(error))
    work = tmp_path_factory.mktemp("cluster")
    home = str(Path(pyspark.__file__).parent)
    environment = {
        **os.environ,
        "JAVA_HOME": java,
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_TOOL_OPTIONS": SMALL,
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, kind: str, *arguments: str) -> Path:
        log = work / f"{name}.log"
        command = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{kind}", *arguments]
        with log.open("wb") as output:
            started = subprocess.Popen(
                command, stdout=output, stderr=output, env=environment, cwd=work
            )
        running.append(started)
        return log

    try:
        host = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        log = start("master", "master.Master", *host)
        master = said(running, log, r"Starting Spark master at (spark://\S+)")
        logs = [
            start(f"worker-{n}", "worker.Worker", *host, "-c", "1", "-m", "1g", master)
            for n in range(2)
        ]
        for log in logs:
            said(running, log, r"(Successfully registered with master)")
        yield Cluster(master, environment)
    finally:
        for one in running:
            one.kill()
        for one in running:
            one.wait()


def said(running: list[subprocess.Popen[bytes]], log: Path, pattern: str) -> str:
    """What a process has written, once it has."""
    end = time.monotonic() + START_S
    while True:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found is not None:
            return found[1]
        if time.monotonic() > end or any(one.poll() is not None for one in running):
            raise TimeoutError(f"{log.name}:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.1)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path / "store") as node:
        node.send("orders", (b"order %03d" % n for n in range(500)))
        yield node


def finished(command: list[str], environment: dict[str, str], folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=folder, timeout=1200
    )
    found = re.search(r"^FOUND (.*)$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout[-2000:] + done.stderr[-4000:]
    result: dict[str, Any] = json.loads(found[1])
    return result


def check(found: dict[str, Any]) -> None:
    orders = [f"order {n:03}" for n in range(500)]
    assert found["copies"] == orders
    assert found["archived"] == orders
    assert found["executors"] == 2


@pytest.mark.skipif(
    not os.environ.get("SPROCKET_LONG"), reason="takes a minute: SPROCKET_LONG=1 runs it"
)
def test_a_session_on_a_cluster_where_the_package_is_installed(
    cluster: Cluster, node: Node, tmp_path: Path
) -> None:
    command = [sys.executable, str(JOB), cluster.master, node.names, str(tmp_path / "archive")]
    found = finished(command, cluster.environment, tmp_path)
    check(found)
    assert found["places"] == [str(ROOT / "src" / "sprocket" / "__init__.py")]


def test_the_package_travels_with_the_job_and_its_pipeline(
    cluster: Cluster, node: Node, tmp_path: Path
) -> None:
    from sprocket.spark import package_zip

    archive = package_zip(tmp_path / "sprocket.zip")
    command = [
        f"{cluster.environment['SPARK_HOME']}/bin/spark-submit",
        "--master", cluster.master,
        "--conf", "spark.executor.memory=512m",
        "--conf", "spark.driver.memory=512m",
        "--py-files", str(archive),
        str(JOB), cluster.master, node.names, str(tmp_path / "archive"),
    ]  # fmt: skip
    found = finished(command, cluster.environment, tmp_path)
    check(found)
    assert all(place.endswith("sprocket.zip/sprocket/__init__.py") for place in found["places"])
