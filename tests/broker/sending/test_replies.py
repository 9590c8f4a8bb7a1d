from __future__ import annotations

from sprocket.message.properties import decode
from sprocket.protocol.command import Reply
from sprocket.protocol.requests.send import (
    PushReplyMessage,
    SendReplyMessage,
    SendReplyMessageV2,
)
from tests.broker.parts import CONFIG, Asker, play

TOPIC = f"{CONFIG.cluster}_REPLY_TOPIC"
FAILED = 1


def answer(
    to: str | None = "c1", kind: type[SendReplyMessageV2] = SendReplyMessageV2
) -> SendReplyMessageV2:
    asker = "" if to is None else f"REPLY_TO_CLIENT\x01{to}\x02"
    return kind(
        producer_group="answerers",
        topic=TOPIC,
        queue_id=0,
        properties=f"CORRELATION_ID\x01n1\x02MSG_TYPE\x01reply\x02TTL\x013000\x02{asker}",
        born_timestamp=7,
    )


def test_an_answer_is_pushed_to_who_asked_and_stored() -> None:
    async def test(asker: Asker) -> None:
        asker.answer = lambda command: Reply()
        await asker.beat(producer="askers", client_id="c1")
        reply = await asker.call(answer(), b"yes")
        assert reply.code == 0
        assert reply.fields["queueOffset"] == "0"
        assert "transactionId" not in reply.fields
        (pushed,) = [command for command in asker.told if command.code == PushReplyMessage.code]
        header = pushed.read(PushReplyMessage)
        assert bytes(pushed.body) == b"yes"
        assert (header.producer_group, header.topic) == ("answerers", TOPIC)
        assert (header.born_timestamp, header.store_host) == (7, asker.broker.address)
        properties = decode(header.properties or "")
        assert (properties["CORRELATION_ID"], properties["REPLY_TO_CLIENT"]) == ("n1", "c1")
        assert properties["PUSH_REPLY_TIME"] == str(header.store_timestamp)
        assert await asker.bodies(TOPIC) == [b"yes"]

    play(test)


def test_the_header_with_long_names_means_the_same() -> None:
    async def test(asker: Asker) -> None:
        asker.answer = lambda command: Reply()
        await asker.beat(producer="askers", client_id="c1")
        header = SendReplyMessage(
            topic=TOPIC, queue_id=0, properties="CORRELATION_ID\x01n\x02REPLY_TO_CLIENT\x01c1\x02"
        )
        assert await asker.code(header, b"yes") == 0
        assert [command.code for command in asker.told] == [PushReplyMessage.code]

    play(test)


def test_an_answerer_hears_when_the_asker_cannot_be_told() -> None:
    async def test(asker: Asker) -> None:
        for header, words in (
            (answer("gone"), "channel of <gone> not found"),
            (answer(None), "REPLY_TO_CLIENT is null"),
        ):
            reply = await asker.call(header, b"yes")
            assert reply.code == FAILED
            assert words in (reply.remark or "")
        asker.answer = lambda command: Reply(code=FAILED, remark="I do not want it")
        await asker.beat(producer="askers", client_id="c1")
        reply = await asker.call(answer(), b"yes")
        assert (reply.code, reply.remark) == (FAILED, "push reply message to c1fail.")
        assert len(await asker.bodies(TOPIC)) == 3

    play(test)


def test_an_answer_needs_a_body_and_properties_of_a_sane_length() -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(answer(), b"") == 13
        header = answer()
        header.properties = "a\x01b\x02" * 100_000
        assert await asker.code(header, b"x") == 13

    play(test)
