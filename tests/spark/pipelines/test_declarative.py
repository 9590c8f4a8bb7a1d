"""The example project of Spark Declarative Pipelines does what its README says."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3] / "examples" / "declarative"
_NEEDED = ("pyspark", "grpc", "grpc_status", "yaml", "pandas")
MISSING = [name for name in _NEEDED if importlib.util.find_spec(name) is None]


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.process
@pytest.mark.skipif(bool(MISSING), reason=f"pip install 'pyspark[pipelines]': {MISSING} missing")
def test_a_topic_becomes_a_table_a_view_and_another_topic(shop: str, tmp_path: Path) -> None:
    import pyarrow.parquet as parquet
    import pyspark

    from sprocket.spark.launching.launch import prepare_environment
    from tests.cli.parts import sprocket

    prepare_environment("local[2]")
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project)
    spec = project / "spark-pipeline.yml"
    text = spec.read_text().replace("127.0.0.1:9876", shop)
    spec.write_text(text.replace("/tmp/sprocket-orders-storage", str(tmp_path / "storage")))
    home = Path(pyspark.__file__).parent
    done = subprocess.run(
        ["bash", home / "bin" / "spark-pipelines", "run", "--conf",
         "spark.sql.catalogImplementation=hive"],
        cwd=project,
        env={**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    tables = project / "spark-warehouse"
    assert parquet.read_table(tables / "orders").num_rows == 40
    found = parquet.read_table(tables / "orders_by_tag").to_pylist()
    assert sorted((row["tag"], row["orders"]) for row in found) == [("new", 20), ("paid", 20)]
    sent = sprocket("consume", "paid", "--end", "--json", "--nameserver", shop)
    assert len(sent.lines) == 20


def test_the_project_is_what_spark_pipelines_takes() -> None:
    spec = (PROJECT / "spark-pipeline.yml").read_text()
    assert "name: orders" in spec
    assert "include: transformations/**" in spec
    for file in (PROJECT / "transformations").glob("*.py"):
        compile(file.read_text(), str(file), "exec")
