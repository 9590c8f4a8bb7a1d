"""Transactions of Java producers at our broker, and of ours at Java's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from sprocket.client.pull_consumer import PullConsumer
from sprocket.client.transactional_producer import Outcome, TransactionalProducer
from sprocket.message.message import Message, StoredMessage
from tests.compat.javaland import (
    CLIENT_VERSIONS,
    QUICK_TRANSACTIONS,
    JavaBroker,
    JavaDriver,
    JavaNameServer,
    require_java,
    until,
    wait_until,
)
from tests.compat.sprocketland import SprocketNode
from tests.support import run

pytestmark = [pytest.mark.java, pytest.mark.process]

#: Ours ask as soon as Java's do with `QUICK_TRANSACTIONS`.
QUICK = {"broker.transaction_timeout_ms": 1000, "broker.transaction_check_ms": 1000}
#: A Java broker that has just come up may take a while over its first message.
PATIENCE_MS = 20_000


@pytest.fixture(scope="module")
def quick_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SprocketNode]:
    require_java()
    with SprocketNode(tmp_path_factory.mktemp("quick"), settings=QUICK) as running:
        yield running


@pytest.fixture(scope="module")
def java_names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_java()
    work: Path = tmp_path_factory.mktemp("java")
    with (
        JavaNameServer(work) as names,
        JavaBroker(work, names.address, settings=QUICK_TRANSACTIONS),
    ):
        yield names.address


async def bodies(names: str, topic: str) -> list[bytes]:
    found: list[bytes] = []
    async with PullConsumer("look", nameservers=names) as consumer:
        for queue in await consumer.queues(topic):
            pulled = await consumer.pull(queue, await consumer.min_offset(queue))
            found += [message.body for message in pulled.messages]
    return sorted(found)


@pytest.mark.parametrize("version", CLIENT_VERSIONS)
def test_java_producers_commit_roll_back_and_are_asked_by_our_broker(
    version: str, quick_node: SprocketNode, tmp_path: Path
) -> None:
    topic = "java_" + version.replace(".", "_")
    with JavaDriver(version, work=tmp_path) as driver:
        names = quick_node.names
        driver.call("producer.start", name=topic, group=topic, namesrv=names, transactional=True)
        for local, check in (
            ("commit", []), ("rollback", []), ("unknown", ["unknown", "commit"]),
            ("throw", ["rollback"]),
        ):  # fmt: skip
            sent = driver.call(
                "producer.sendInTransaction",
                name=topic, topic=topic, text=local, local=local, check=check,
            )  # fmt: skip
            assert sent["status"] == "SEND_OK"

        def answers(text: bytes) -> list[str]:
            """To checks of a message; whoever is slow to answer is asked again."""
            checks = (event for event in driver.events("check") if event["producer"] == topic)
            return [each["answer"] for each in checks if each["message"]["body"] == text]

        wait_until(lambda: "commit" in answers(b"unknown") and answers(b"throw"))
        driver.call(
            "consumer.start", name=topic, group=f"G_{topic}", namesrv=names, topic=topic,
        )  # fmt: skip
        messages = driver.wait_messages(2, consumer=topic)
        assert sorted(message["body"] for message in messages) == [b"commit", b"unknown"]
        assert (answers(b"unknown")[0], {*answers(b"unknown")[1:]}) == ("unknown", {"commit"})
        assert {*answers(b"throw")} == {"rollback"}
        assert run(bodies(names, topic)) == [b"commit", b"unknown"]


@pytest.mark.parametrize("broker", ["ours", "java's"])
@pytest.mark.parametrize("version", CLIENT_VERSIONS)
def test_a_java_member_answers_for_one_of_ours_and_ours_for_java(
    version: str, broker: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if broker == "ours":
        names: str = request.getfixturevalue("quick_node").names
    else:
        names = request.getfixturevalue("java_names")
    asked: list[bytes] = []

    def check(message: StoredMessage) -> Outcome:
        asked.append(message.body)
        return Outcome.COMMIT

    async def ours(topic: str) -> None:
        producer = TransactionalProducer(topic, nameservers=names)
        begun = producer.transaction(Message(topic, b"ours"), timeout_ms=PATIENCE_MS)
        async with producer, begun as transaction:
            transaction.leave_open()

    async def checks(topic: str) -> None:
        async with TransactionalProducer(topic, nameservers=names, check=check) as member:
            await member.send(Message(topic, b"plain"), timeout_ms=PATIENCE_MS)
            await until(lambda: has(topic, [b"java", b"ours", b"plain"]))

    async def has(topic: str, expected: list[bytes]) -> bool:
        found = await bodies(names, topic)
        # Java's broker asks whom it has no answer from yet once more, and then takes both answers.
        return found == expected if broker == "ours" else sorted({*found}) == expected

    topic = f"mixed_{version.replace('.', '_')}_{broker[:4]}"
    run(ours(topic))
    with JavaDriver(version, work=tmp_path) as driver:
        driver.call(
            "producer.start",
            name=topic, group=topic, namesrv=names, transactional=True,
            check=["commit"],
        )  # fmt: skip
        driver.call("producer.send", name=topic, topic=f"{topic}_wakes", text="x")
        driver.wait_events("check", 1)
        run(until(lambda: has(topic, [b"ours"])))
        driver.call(
            "producer.sendInTransaction",
            name=topic, topic=topic, text="java", local="unknown", check=["unknown"],
        )  # fmt: skip
    run(checks(topic))
    assert set(asked) == {b"java"}


def test_our_producer_at_a_java_broker(java_names: str) -> None:
    topic = "ours"
    asked: list[bytes] = []

    async def check(message: StoredMessage) -> Outcome:
        asked.append(message.body)
        is_to_go = message.body in (b"rolled back", b"asked too")
        return Outcome.ROLLBACK if is_to_go else Outcome.COMMIT

    visible = [b"asked", b"committed", b"x" * 9000]

    async def main() -> None:
        async with TransactionalProducer("ours", nameservers=java_names, check=check) as producer:
            async with producer.transaction(Message(topic, b"committed", keys=["k"])) as first:
                assert await bodies(java_names, topic) == []
            assert first.is_confirmed
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction(Message(topic, b"rolled back")):
                    _ = 1 / 0
            for body in (b"asked", b"asked too"):
                async with producer.transaction(Message(topic, body)) as left:
                    left.leave_open()
            await producer.send_in_transaction(
                Message(topic, b"x" * 9000), lambda transaction: Outcome.COMMIT
            )

            async def is_done() -> bool:
                are_asked = {*asked} >= {b"asked", b"asked too"}
                return {*await bodies(java_names, topic)} == {*visible} and are_asked

            await until(is_done)

    run(main())
    assert sorted({*run(bodies(java_names, topic))}) == visible


def test_a_store_with_undecided_transactions_moves_to_java_and_back(
    java_names: str, tmp_path: Path
) -> None:
    topic, asked = "moves", []
    answers = {b"asked": Outcome.UNKNOWN}

    async def check(message: StoredMessage) -> Outcome:
        asked.append(message.body)
        return answers.get(message.body, Outcome.UNKNOWN)

    async def begin(names: str) -> None:
        async with TransactionalProducer("moves", nameservers=names, check=check) as producer:
            async with producer.transaction(Message(topic, b"committed")):
                pass
            async with producer.transaction(Message(topic, b"rolled back")) as transaction:
                transaction.roll_back()
            async with producer.transaction(Message(topic, b"asked")) as transaction:
                transaction.leave_open()

            async def is_asked() -> bool:
                return b"asked" in asked

            await until(is_asked)

    async def go_on(names: str) -> list[bytes]:
        async with TransactionalProducer("moves", nameservers=names, check=check) as producer:
            await producer.queues(topic)

            async def is_done() -> bool:
                return {*await bodies(names, topic)} == {b"asked", b"committed"}

            await until(is_done)
            await asyncio.sleep(2.5)
            return await bodies(names, topic)

    node = SprocketNode(tmp_path, settings=QUICK)
    with node:
        run(begin(node.names))
        node.stop()
    asked.clear()
    answers[b"asked"] = Outcome.COMMIT
    with JavaBroker(
        tmp_path, java_names, name="mover", store=node.store, settings=QUICK_TRANSACTIONS
    ):
        found = run(go_on(java_names))
        assert {*found} == {b"asked", b"committed"}
        assert {*asked} == {b"asked"}
    asked.clear()
    with node:
        assert run(go_on(node.names)) == found
        node.stop()
    assert asked == []
