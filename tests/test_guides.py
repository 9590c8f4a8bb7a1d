"""The programs of the guide run as they stand, and print what stands there.

Each ```python block of `docs/guide/*.md` is a whole program, and runs in a process of its own. It
prints what stands in the ```text block right behind it, or nothing. A program that brings no
`Standalone` of its own finds a fresh one in SPROCKET_NAMESERVERS. A block whose fence says
```python no-run is only shown.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main

import sprocket
from tests.support import run

GUIDE = Path(__file__).resolve().parent.parent / "docs" / "guide"
PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
#: Lines of a plain block, or code in a sentence, that call our command.
COMMAND = re.compile(r"(?:^|`)(sprocket [^`#\n]+)", re.MULTILINE)


class Example(NamedTuple):
    page: str
    program: str
    printed: str


def examples() -> Iterator[Any]:
    for page in sorted(GUIDE.glob("*.md")):
        for number, found in enumerate(PROGRAM.finditer(page.read_text()), 1):
            example = Example(page.stem, found[1], found[2] or "")
            yield pytest.param(example, id=f"{page.stem}-{number}")


def finished(program: Path, **variables: str) -> str:
    """What a program prints, once it ended well."""
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=program.parent,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.process
@pytest.mark.parametrize("example", list(examples()))
def test_programs_of_the_guide_print_what_stands_there(example: Example, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(example.program)

    async def with_a_node() -> str:
        async with sprocket.Standalone() as node:
            return await asyncio.to_thread(
                finished, program, SPROCKET_NAMESERVERS=node.nameserver_address
            )

    if "Standalone" in example.program:
        assert finished(program) == example.printed
    else:
        assert run(with_a_node()) == example.printed


def test_every_command_of_the_guide_exists_with_its_options() -> None:
    from sprocket.cli.main import app

    whole = typer.main.get_command(app)
    wrong = []
    for page in sorted(GUIDE.glob("*.md")):
        for words in COMMAND.findall(page.read_text()):
            try:
                check(whole, words.split()[1:])
            except LookupError as error:
                wrong.append(f"{page.name}: {words.strip()}: {error}")
    assert not wrong, "\n".join(wrong)


def check(command: Any, words: list[str]) -> None:
    """Follows the words into the tree of commands."""
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        name, *words = words
        if name.isupper():  # it stands for any of them
            return
        if name not in command.commands:
            raise LookupError(f"there is no {name!r}")
        command = command.commands[name]
    known = {option for each in command.params for option in each.opts + each.secondary_opts}
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("-") and not option[1:2].isdigit() and option not in known:
            raise LookupError(f"it has no option {option}")
