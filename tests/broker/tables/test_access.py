"""Who may read what, through the door."""

from __future__ import annotations

from sprocket.protocol.bodies import GroupConfig
from sprocket.protocol.command import Command
from sprocket.protocol.requests.group import CreateGroup, ForbidGroup
from sprocket.protocol.requests.pull import PullMessage
from tests.broker.parts import SUCCESS, Asker, play, pull_of


async def known(asker: Asker, *, group: str = "g", topic: str = "T", version: int = 1) -> Command:
    """A pull that relies on the group's heartbeats."""
    header = PullMessage(
        consumer_group=group,
        topic=topic,
        queue_id=0,
        queue_offset=0,
        max_msg_nums=32,
        sub_version=version,
    )
    return await asker.call(header)


async def put_group(asker: Asker, **settings: object) -> None:
    body = GroupConfig(group_name="g", **settings).encode()  # type: ignore[arg-type]
    assert await asker.code(CreateGroup(), body) == SUCCESS


def test_a_group_is_served_by_the_subscription_that_its_heartbeats_told() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T", TAGS="a")
        await asker.send("T", TAGS="b")
        await asker.create("U")
        assert (await known(asker)).code == 24
        await asker.beat("g", topics={"T": "b"}, version=5)
        reply = await known(asker, version=5)
        assert (reply.code, reply.fields["nextBeginOffset"]) == (SUCCESS, "2")
        assert (await known(asker, version=4)).code == SUCCESS
        assert (await known(asker, version=6)).code == 25
        assert (await known(asker, topic="U")).code == 24

    play(test)


def test_a_group_that_may_not_consume_is_told_by_what() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T")
        await put_group(asker, consume_enable=False)
        reply = await asker.call(pull_of("T"))
        assert (reply.code, reply.fields["forbiddenType"]) == (16, "2")
        await put_group(asker, consume_broadcast_enable=False)
        await asker.beat("g", topics={"T": "*"}, model="BROADCASTING")
        reply = await known(asker)
        assert (reply.code, reply.fields["forbiddenType"]) == (16, "4")
        await put_group(asker)
        assert (await known(asker)).code == SUCCESS
        await asker.call(ForbidGroup(group="g", topic="T", readable=False))
        reply = await known(asker)
        assert (reply.code, reply.fields["forbiddenType"]) == (16, "5")

    play(test)


def test_topics_and_queues_that_cannot_be_read() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("W", permission=2)
        reply = await asker.call(pull_of("W"))
        assert (reply.code, reply.fields["forbiddenType"]) == (16, "3")
        assert (await asker.call(pull_of("nothing"))).code == 17
        await asker.create("T", 2)
        for queue in (-1, 2):
            assert (await asker.call(pull_of("T", queue=queue))).code == 29

    play(test)


def test_an_unknown_group_is_made_or_refused() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        header = pull_of("T")
        header.consumer_group = "bad name!"
        assert (await asker.call(header)).code == 26

    async def off(asker: Asker) -> None:
        await asker.create("T")
        assert (await asker.call(pull_of("T"))).code == 26

    play(test)
    play(off, auto_create_groups=False)


def test_an_expression_that_names_no_tag_is_refused() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T")
        assert (await asker.pull("T", tags="||")).code == 23
        assert (await asker.pull("T", tags="")).code == SUCCESS

    play(test)
