"""What the comparison with Kafka needs, fetched once into `.bench`.

Spark's connector for Kafka is to be had for PySpark 4.2.0, so both sides are measured on that, in
a virtual environment of their own.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tests.compat import javaland

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TARGET = ROOT / ".bench"
PYSPARK = "4.2.0"
_PACKAGES = (f"pyspark=={PYSPARK}", "confluent-kafka>=2.6")


@dataclass(frozen=True, slots=True)
class Ground:
    """The interpreter with PySpark, Kafka's broker, and Spark's connector for it (jars, or None).

    Attributes:
        python: an interpreter with PySpark, this package and a Kafka producer.
        server: folder of the broker's jars.
        connector: folder of the connector's jars.
    """

    python: Path
    server: Path | None
    connector: Path | None


def prepare(console: Console) -> Ground:
    """Fetches what is missing. Without Maven there is no Kafka; the console says so."""
    python = TARGET / "venv" / "bin" / "python"
    if not (TARGET / "venv.stamp").exists():
        console.print(f"making an environment with PySpark {PYSPARK} (once)")
        subprocess.run([sys.executable, "-m", "venv", str(TARGET / "venv")], check=True)
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, "-e", f"{ROOT}[spark,jdk]", *_PACKAGES], check=True)
        (TARGET / "venv.stamp").touch()
    reason = javaland.available()
    if reason:
        console.print(f"without Kafka's column: {reason}")
        return Ground(python, None, None)
    return Ground(python, _jars("server"), _jars("connector"))


def _jars(name: str) -> Path:
    folder = TARGET / name
    stamp = TARGET / f"{name}.stamp"
    if not stamp.exists():
        command = ["mvn", "-q", "-B", "-f", str(HERE / "kafka" / name / "pom.xml")]
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        subprocess.run([*command, *goal], check=True)
        stamp.touch()
    return folder
