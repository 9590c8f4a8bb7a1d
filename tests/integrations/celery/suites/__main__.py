"""Runs Kombu's and Celery's own integration tests on a broker of Sprocket: make test-celery.

python -m tests.integrations.celery.suites                 all of them
python -m tests.integrations.celery.suites kombu tasks     some: kombu, tasks, inspect, canvas
python -m tests.integrations.celery.suites canvas --redis 127.0.0.1:6379   results in Redis

Their source archives, of the versions that are installed, are downloaded by pip. Results of tasks
are kept by `rpc://`, and for `canvas`, whose chords need a database, by SQLite. With a Redis server
(`pip install redis`) it keeps all results, and tests that ask for one run too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from sprocket.testing.node_thread import NodeThread

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
SECONDS_EACH = 120


@dataclass(frozen=True)
class Suite:
    """Tests of one source archive.

    Attributes:
        package: the archive.
        module: the file of the tests, in its folder.
        backend: where Celery keeps results.
    """

    package: str
    module: str
    backend: str = "rpc://"


SUITES = {
    "kombu": Suite("kombu", "test_kombu.py"),
    "tasks": Suite("celery", "t/integration/test_tasks.py"),
    "inspect": Suite("celery", "t/integration/test_inspect.py"),
    "canvas": Suite("celery", "t/integration/test_canvas.py", "db+sqlite:///results.sqlite"),
}


@dataclass
class Outcome:
    """What became of a suite's tests."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def as_text(self, name: str) -> str:
        """Figures, reasons and names for people."""
        lines = [
            f"{name}: {self.passed} passed, {self.skipped.total()} skipped,"
            f" {len(self.failed)} failed",
            *(f"  {count} skipped: {why}" for why, count in self.skipped.most_common()),
            *(f"  failed: {each}" for each in self.failed),
        ]
        return "".join(f"{line}\n" for line in lines)


def unpack(package: str, folder: Path) -> Path:
    """Downloads the source archive of a package that is installed, and unpacks its tests."""
    wanted = f"{package}=={version(package)}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*command, "--no-deps", "--no-binary", ":all:", "--dest", str(folder), wanted],
        check=True,
        timeout=600,
    )
    (archive,) = folder.glob(f"{package}-*.tar.gz")
    with tarfile.open(archive) as files:
        tests = [each for each in files if each.name.split("/")[1:2] == ["t"]]
        files.extractall(folder, members=tests, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def run(suite: Suite, folder: Path, nameservers: str, redis: str | None) -> Outcome:
    """Runs a suite in its folder; with the address of a Redis server, results are kept there."""
    if suite.package == "kombu":
        shutil.copy(HERE / "kombu_cases.py", folder / suite.module)
    (folder / "pytest.ini").write_text("[pytest]\npython_classes = Test* test_*\n")
    report = folder / "report.xml"
    names = ["-p", f"{__package__}.plugin", "-p", "no:cacheprovider"]
    if suite.package == "celery":
        names += ["-p", "celery.contrib.pytest"]
    limit = f"--timeout={SECONDS_EACH}"
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=short", limit, f"--junit-xml={report}",
         *names, suite.module],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src"), str(folder)]),
            "SUITES_NAMESERVERS": nameservers,
            "TEST_BROKER": f"sprocket+rocketmq://{nameservers}",
            "TEST_BACKEND": f"redis://{redis}" if redis else suite.backend,
            **redis_of(redis),
            "WORKER_LOGLEVEL": "INFO",
        },
    )  # fmt: skip
    return read(report)


def redis_of(address: str | None) -> dict[str, str]:
    """Where Celery's tests find a Redis server."""
    host, _, port = (address or "").partition(":")
    return {"REDIS_HOST": host, "REDIS_PORT": port} if host else {}


def read(report: Path) -> Outcome:
    """Reads pytest's report."""
    outcome = Outcome()
    for case in ET.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed.append(name)
        elif skipped is not None:
            outcome.skipped[(skipped.get("message") or "").splitlines()[0]] += 1
        else:
            outcome.passed += 1
    return outcome


def main() -> int:
    """Runs the suites that are asked for, and says what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[[], *SUITES], help="all, unless named")
    parser.add_argument("--redis", metavar="HOST:PORT", help="a Redis server for all results")
    asked = parser.parse_args()
    names = asked.suites or list(SUITES)
    outcomes = {}
    with tempfile.TemporaryDirectory() as path, NodeThread() as node:
        packages = {SUITES[name].package for name in names}
        folders = {each: unpack(each, Path(path)) for each in packages}
        for name in names:
            folder = folders[SUITES[name].package]
            outcomes[name] = run(SUITES[name], folder, node.nameservers, asked.redis)
    for name, outcome in outcomes.items():
        sys.stdout.write(outcome.as_text(name))
    return any(each.failed for each in outcomes.values())


if __name__ == "__main__":
    sys.exit(main())
