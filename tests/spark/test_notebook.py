"""The notebook of the examples and the programs of the guide page run as they stand.

They share the tests' session: `sprocket.spark.session()` gives the one that is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.node import Node

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Spark may be slow where much else runs.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("notebook") / "store") as node:
        yield node


def test_the_notebook_runs(
    spark: SparkSession,
    node: Node,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SPROCKET_NAMESERVERS", node.names)
    notebook = json.loads((ROOT / "examples" / "topics_in_spark.ipynb").read_text())
    names: dict[str, Any] = {}
    for number, cell in enumerate(notebook["cells"]):
        assert not cell.get("outputs"), "outputs are not kept"
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    said = capsys.readouterr().out
    assert re.search(r"\| *paid\| *eu\| *250\|", said)
    assert str(sum(n * 1.5 for n in range(0, 1000, 4))) in said
    assert names["archived_rows"] == 1000
    assert "no option startingoffset: did you mean startingOffsets?" in said
    assert re.search(r"ReadFailed: notebook-orders@broker-a:0 at offset \d+, of ", said)


def test_the_programs_of_the_guide_run(
    spark: SparkSession,
    node: Node,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("SPROCKET_NAMESERVERS", node.names)
    monkeypatch.setenv("SPROCKET_STORE", str(node.store))
    page = (ROOT / "docs" / "guide" / "spark.md").read_text().partition("\n## Pipelines")[0]
    programs = re.findall(r"^```python no-run\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(programs) > 5
    names: dict[str, Any] = {"folder": str(tmp_path)}
    for number, program in enumerate(programs):
        if "query" in program:  # the notebook has the same, and streams are slow to start
            continue
        exec(compile(program, f"program {number}", "exec"), names)
    said = capsys.readouterr().out
    assert re.search(r"\| *paid\| *500\|", said)
    assert re.findall(r"order (99\d)\|", said) == ["990", "992", "994", "996", "998"]
    assert re.search(r"\| *orders\| *1000\|", said)
