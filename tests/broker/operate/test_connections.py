"""Operators and connected clients."""

from __future__ import annotations

from sprocket.protocol.bodies import (
    ConsumerConnection,
    ConsumeStatusBody,
    ProducerConnection,
    ProducerTable,
    Queue,
)
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.client import (
    AllProducers,
    ConsumeDirectly,
    ConsumerConnections,
    ConsumerRunning,
    ProducerConnections,
)
from sprocket.protocol.requests.offset import ConsumeStatus
from tests.broker.parts import SUCCESS, Asker, another, play


def test_members_are_shown_with_their_subscriptions() -> None:
    async def test(asker: Asker) -> None:
        await asker.beat("g", topics={"T": "a"}, producer="p")
        reply = await asker.call(ConsumerConnections(consumer_group="g"))
        shown = ConsumerConnection.decode(reply.body)
        (client,) = shown.connection_set
        assert (client.client_id, client.language, client.version) == ("c1", "PYTHON", 479)
        assert shown.subscription_table["T"].sub_string == "a"
        reply = await asker.call(ProducerConnections(producer_group="p"))
        assert len(ProducerConnection.decode(reply.body).connection_set) == 1
        reply = await asker.call(AllProducers())
        assert ProducerTable.decode(reply.body).data["p"][0].remote_ip.startswith("/127.0.0.1:")
        assert await asker.code(ConsumerConnections(consumer_group="nobody")) == 206
        assert await asker.code(ProducerConnections(producer_group="nobody")) == 1

    play(test)


def test_what_a_client_is_asked_through_the_broker_is_answered_by_it() -> None:
    def consumer(command: Command) -> Reply | None:
        if command.code == ConsumerRunning.code:
            return Reply(body=b'{"jstack":"here"}')
        if command.code == ConsumeDirectly.code:
            return Reply(body=bytes(command.body), remark="done")
        if command.is_oneway:
            return None
        table = {Queue(broker_name="b", queue_id=0, topic="T"): 7}
        return Reply(body=ConsumeStatusBody(message_queue_table=table).encode())

    async def test(asker: Asker) -> None:
        sent = await asker.send("T", b"now")
        async with another(asker) as other:
            other.answer = consumer
            await other.beat("g", client_id="c2", topics={"T": "*"})
            reply = await asker.call(ConsumerRunning(consumer_group="g", client_id="c2"))
            assert (reply.code, bytes(reply.body)) == (SUCCESS, b'{"jstack":"here"}')
            directly = ConsumeDirectly(consumer_group="g", client_id="c2", msg_id=sent["msgId"])
            reply = await asker.call(directly)
            assert (reply.remark, b"now" in bytes(reply.body)) == ("done", True)
            passed_on = other.told[-1].fields
            assert (passed_on["brokerName"], passed_on["groupSysFlag"]) == ("broker-a", "0")
            directly.msg_id = "nonsense"
            assert await asker.code(directly) == 1
            reply = await asker.call(ConsumeStatus(topic="T", group="g"))
            (offsets,) = ConsumeStatusBody.decode(reply.body).consumer_table.values()
            assert list(offsets.values()) == [7]
            assert await asker.code(ConsumeStatus(topic="T", group="g", client_addr="x")) == 206

    play(test)


def test_a_client_that_is_not_there_or_does_not_answer_is_an_error_in_time() -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(ConsumerRunning(consumer_group="g", client_id="x")) == 1
        async with another(asker) as other:
            await other.beat("g", client_id="c2", topics={"T": "*"})
            reply = await asker.call(ConsumerRunning(consumer_group="g", client_id="c2"))
            assert (reply.code, "does not answer" in (reply.remark or "")) == (1, True)

    play(test)
