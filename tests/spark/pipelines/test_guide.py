"""The guide's commands run as they stand there, and its tables are the declarations."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sprocket.cli.pipelines import PIPELINES
from sprocket.spark import pipelines
from sprocket.spark.pipelines.parts.job import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "pipelines.md"
_EVERYWHERE = {"nameservers", "options"}


def tables() -> str:
    """The tables of options."""
    return "\n\n".join(_table(name) for name in PIPELINES)


def _table(name: str) -> str:
    def lines() -> Iterator[str]:
        yield f"`{name}`, in Python `{PIPELINES[name]}`:\n"
        yield "| Option | Field | |"
        yield "|---|---|---|"
        for one, said in settings(getattr(pipelines, PIPELINES[name])):
            if one.name not in _EVERYWHERE:
                doc = said.doc.replace("|", "\\|")
                yield f"| `--{said.option}` | `{one.name}` | {doc} |"

    return "\n".join(lines())


def commands() -> list[str]:
    """The lines of plain blocks that call our command."""
    blocks = re.findall(r"^```(.*?)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return [line for language, block in blocks if not language for line in block.splitlines()]


def test_the_page_has_every_option_in_the_words_of_its_declaration() -> None:
    assert PAGE.read_text().endswith(f"{tables()}\n")


def test_every_pipeline_has_a_command_on_the_page() -> None:
    shown = {line.split()[3] for line in commands() if line.startswith("sprocket pipeline run")}
    assert shown == set(PIPELINES)


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_commands_and_program_of_the_page_run_as_they_stand(
    spark: SparkSession, shop: str, elsewhere: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from sprocket import Message
    from sprocket.client.blocking import Producer
    from tests.cli.parts import sprocket
    from tests.spark.pipelines.test_trace import consumed, pub

    with Producer("p", nameservers=shop) as producer:
        producer.send(Message("RMQ_SYS_TRACE_TOPIC", (pub(1) + consumed(1, 5)).encode()))
    for line in commands():
        words = shlex.split(line.replace("other:9876", elsewhere))[1:]
        outcome = sprocket(*words, SPROCKET_NAMESERVERS=shop)
        assert outcome.code == 0, f"{line}: {outcome.err}"
        assert outcome.out, line
    for page in ("letters.html", "lag.html", "volume.html", "latency.html"):
        assert Path(page).read_text().startswith("<!doctype html>")
    program = re.search(
        r"^```python no-run\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert program is not None
    exec(program[1].replace("127.0.0.1:9876", shop), {})
    assert "0 messages, 40 in the archive" in capsys.readouterr().out
