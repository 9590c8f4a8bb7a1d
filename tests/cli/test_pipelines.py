"""`sprocket pipeline`: what is told without Spark; the guide's commands are run with it."""

from __future__ import annotations

import json

import pytest

from sprocket.cli.pipelines import PIPELINES
from sprocket.spark import pipelines
from sprocket.spark.pipelines.parts.progress import Progress
from tests.cli.parts import sprocket


def test_pipelines_are_listed() -> None:
    outcome = sprocket("pipeline", "list", "--json")
    found = [json.loads(line) for line in outcome.lines]
    assert [one["pipeline"] for one in found] == list(PIPELINES)
    assert "archive" in sprocket("pipeline", "list").out
    assert sorted(PIPELINES.values()) == sorted(pipelines.__all__)


@pytest.mark.parametrize("name", PIPELINES)
def test_each_has_help_with_examples_and_says_where_spark_runs(name: str) -> None:
    outcome = sprocket("pipeline", "run", name, "--help")
    assert outcome.code == 0
    words = " ".join(outcome.out.split())
    assert f"Examples: sprocket pipeline run {name}" in words
    for option in ("--master", "--conf", "--json", "--report", "--nameserver"):
        assert option in words


def test_help_is_as_wide_as_the_terminal() -> None:
    outcome = sprocket("pipeline", "run", "archive", "--help", COLUMNS="150")
    assert 100 < max(map(len, outcome.out.splitlines())) <= 150


def test_wrong_words_are_told_the_nearest_right_ones() -> None:
    outcome = sprocket("pipeline", "run", "archve")
    assert outcome.code == 2
    assert "'archive'" in outcome.err
    outcome = sprocket("pipeline", "run", "archive", "--topik", "orders")
    assert outcome.code == 2
    assert "--topic" in outcome.err
    outcome = sprocket("pipeline", "run", "archive", "--topic", "orders")
    assert outcome.code == 2
    assert "--to" in outcome.err


def test_values_that_make_no_sense_are_refused_before_spark_starts() -> None:
    outcome = sprocket("pipeline", "run", "archive", "--to", "a", "--body", "xml")
    assert (outcome.code, outcome.err) == (
        2,
        "sprocket: body is one of raw, json, decoded: 'xml'\n",
    )
    outcome = sprocket("pipeline", "run", "trace", "--since", "once")
    assert outcome.code == 2
    assert "a time is first, last" in outcome.err


def test_a_wrong_topic_is_named_before_spark_starts(node: str) -> None:
    options = ("--topic", "nowhere", "--to", "a", "--nameserver", node)
    outcome = sprocket("pipeline", "run", "archive", *options)
    assert outcome.code != 0
    assert outcome.err.count("\n") == 1
    assert "nowhere" in outcome.err


def test_progress_is_told_in_a_line() -> None:
    assert Progress(1200, 350.4, 20).in_words() == "1,200 messages, 350/s, lag 20"
    assert Progress(3, None, None).in_words() == "3 messages"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sprocket pipeline run ap", ["apply"]),
        ("sprocket pipeline run apply --format d", ["delta"]),
        ("sprocket pipeline run lag --format ", ["parquet", "csv", "delta", "iceberg"]),
        ("sprocket pipeline run apply --table d", []),
    ],
)
def test_the_tab_key_offers_pipelines_and_the_words_of_their_options(
    typed: str, offered: list[str]
) -> None:
    position = typed.count(" ")
    outcome = sprocket(
        _SPROCKET_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(position)
    )
    assert outcome.out.split() == offered
