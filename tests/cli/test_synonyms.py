"""Suggestions for commands that there are not."""

from __future__ import annotations

from typing import Any

import pytest
import typer.main

from sprocket.cli.main import app
from sprocket.cli.synonyms import SYNONYMS
from tests.cli.parts import sprocket


def groups(node: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], set[str]]]:
    """All groups of commands, with the names in them."""
    if not hasattr(node, "commands"):
        return []
    below = [each for name, sub in node.commands.items() for each in groups(sub, (*path, name))]
    return [(path, set(node.commands)), *below]


ALL = groups(typer.main.get_command(app))
NAMES = {" ".join((*path, name)) for path, names in ALL for name in names}


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("topic describe", "show"),
        ("group describe", "show"),
        ("topic alter", "update"),
        ("topic ls", "list"),
        ("filter delete", "remove"),
        ("config update", "set"),
        ("message cancel", "recall"),
        ("produce", "send"),
        ("offsets", "group lag"),
        ("topik", "topic"),
        ("topic crate", "create"),
    ],
)
def test_another_word_for_a_command_suggests_it(words: str, meant: str) -> None:
    outcome = sprocket(*words.split(), "orders")
    assert outcome.code == 2
    assert f"Did you mean '{meant}'" in outcome.err


def test_each_suggestion_is_a_command_of_some_group() -> None:
    ends = {name.rpartition(" ")[2] for name in NAMES}
    for word, meant in SYNONYMS.items():
        for each in meant:
            assert each.startswith("--") or each in (NAMES if " " in each else ends), (word, each)


def test_what_every_group_is_asked_for_leads_somewhere() -> None:
    """Each group that can do a thing says how, whichever word one tries."""
    for path, names in ALL:
        for word in ("describe", "ls", "add", "rm", "alter", "delete", "update", "create", "show"):
            if word not in names and names & set(SYNONYMS[word]):
                assert "Did you mean" in sprocket(*path, word).err, (path, word)
