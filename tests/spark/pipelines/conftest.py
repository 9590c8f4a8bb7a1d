"""One cluster with a shop in it for all tests of pipelines; each writes topics of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sprocket import Message
from sprocket.client.blocking import Producer
from tests.cli.parts import running_node
from tests.spark.pipelines.shop import ORDERS, body_of, tag_of


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name server's address of a cluster with the topic `orders`."""
    with running_node(str(tmp_path_factory.mktemp("shop"))) as address:
        with Producer("shop", nameservers=address) as producer:
            for number in range(ORDERS):
                producer.send(
                    Message(
                        "orders",
                        body_of(number),
                        tag=tag_of(number),
                        keys=[f"o-{number}"],
                        properties={"region": "eu"},
                        flag=number,
                    )
                )
        yield address


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Another cluster, empty for each test."""
    with running_node(str(tmp_path_factory.mktemp("elsewhere"))) as address:
        yield address


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pipeline remembers by default lies in the working directory."""
    monkeypatch.chdir(tmp_path)
