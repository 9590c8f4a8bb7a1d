"""Request modes, and the queues that the broker gives to members."""

from __future__ import annotations

from sprocket.protocol.bodies import AssignmentBody, AssignmentQuery, RequestMode, RequestModes
from sprocket.protocol.requests.group import AllRequestModes, QueryAssignment, SetRequestMode
from tests.broker.parts import Asker, another, new_disk, play


async def set_mode(asker: Asker, topic: str, mode: str = "POP", shared: int = 0) -> int:
    body = RequestMode(consumer_group="g", topic=topic, mode=mode, pop_share_queue_num=shared)
    return await asker.code(SetRequestMode(), body.encode())


async def assigned(
    asker: Asker, topic: str = "t", *, member: str = "c1", strategy: str = "AVG",
    model: str = "CLUSTERING",
) -> tuple[set[str], list[int]] | None:  # fmt: skip
    """The modes and the numbers of a member's queues; None if there is no list."""
    query = AssignmentQuery(
        client_id=member, consumer_group="g", message_model=model, strategy_name=strategy,
        topic=topic,
    )  # fmt: skip
    reply = await asker.call(QueryAssignment(), query.encode())
    found = AssignmentBody.decode(reply.body).message_queue_assignments
    if found is None:
        return None
    numbers = [each.message_queue.queue_id for each in found if each.message_queue is not None]
    return {each.mode or "" for each in found}, numbers


def test_a_mode_is_set_for_a_topic_and_a_group_and_kept() -> None:
    disk = new_disk()

    async def first(asker: Asker) -> None:
        await asker.create("t", 4)
        assert await set_mode(asker, "t", shared=2) == 0
        assert await set_mode(asker, "unknown") == 17
        assert await set_mode(asker, "%RETRY%g") == 16
        assert await set_mode(asker, "t", "PUSH") == 29

    async def second(asker: Asker) -> None:
        reply = await asker.call(AllRequestModes())
        (kept,) = RequestModes.decode(reply.body).message_request_mode_map["t"].values()
        assert (kept.consumer_group, kept.mode, kept.pop_share_queue_num) == ("g", "POP", 2)

    play(first, disk)
    play(second, disk)


def test_members_get_shares_to_pull_or_all_to_pop() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 4)
        assert await assigned(asker) is None  # nobody knows the group
        await asker.beat("g", client_id="c1", topics={"t": "*"})
        async with another(asker) as other:
            await other.beat("g", client_id="c2", topics={"t": "*"})
            assert await assigned(asker) == ({"PULL"}, [0, 1])
            assert await assigned(asker, member="c2") == ({"PULL"}, [2, 3])
            assert await assigned(asker, strategy="AVG_BY_CIRCLE") == ({"PULL"}, [0, 2])
            assert await assigned(asker, strategy="OTHER") is None
            assert await assigned(asker, member="c3") == (set(), [])
            assert await assigned(asker, "unknown") is None
            assert await assigned(asker, model="BROADCASTING") == ({"PULL"}, [0, 1, 2, 3])
            assert await set_mode(asker, "t") == 0
            assert await assigned(asker) == ({"POP"}, [-1])
            assert await assigned(asker, member="c2") == ({"POP"}, [-1])
        assert await asker.code(QueryAssignment(), b"{}") == 29

    play(test)


def test_settings_decide_where_no_mode_is_set() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 4)
        await asker.beat("g", topics={"t": "*"})
        assert await assigned(asker) == ({"POP"}, [-1])
        assert await assigned(asker, "%RETRY%g") == ({"PULL"}, [0])

    play(test, request_mode="POP")

    async def whole(asker: Asker) -> None:
        await asker.create("t", 4)
        assert await assigned(asker) == ({"PULL"}, [0, 1, 2, 3])

    play(whole, server_rebalance=False)
