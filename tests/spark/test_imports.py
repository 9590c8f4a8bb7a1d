"""What Spark's processes load: a task pays for it before its first row, in every new worker."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: The rest of the house, and what it is built with.
FOREIGN = (
    "asyncio", "uvloop", "typer", "rich", "lark", "sprocket.admin", "sprocket.broker",
    "sprocket.cli", "sprocket.client", "sprocket.nameserver", "sprocket.store.views",
)  # fmt: skip
#: What only the planner needs, or a read with an SQL condition.
RARE = ("sprocket.protocol.bodies", "sprocket.filter.sql92")


#: What packs rows: Spark starts a process for each commit, which would take most of a second more.
HEAVY = ("numpy", "pyarrow", "pandas")


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        *(
            (module, (*FOREIGN, *RARE))
            for module in (
                "reading.read", "reading.stream_reader", "store_files.read", "writing.write",
                "writing.send", "writing.staging",
            )
        ),
        ("writing.publishing", (*FOREIGN, *HEAVY)),
    ],
)  # fmt: skip
def test_a_process_loads_no_more_than_it_needs(module: str, unwanted: tuple[str, ...]) -> None:
    program = f"import sys, sprocket.spark.{module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = done.stdout.decode().split()
    found = [one for one in loaded if any(f"{one}.".startswith(f"{name}.") for name in unwanted)]
    assert not found
