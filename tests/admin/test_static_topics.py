"""What an operator does about static topics, against a node."""

from __future__ import annotations

import pytest

from sprocket.admin import static_topics, topic_changes
from sprocket.base.errors import TopicNotFound, UsageError
from tests.admin.test_topics import operating
from tests.support import run


def test_a_static_topic_is_made_and_grows() -> None:
    async def story() -> None:
        async with operating() as (_, caller):
            await static_topics.create(caller, "T", queues=2, brokers=(), now_ms=5)
            known = await static_topics.create(
                caller, "T", queues=3, brokers=["broker-a"], now_ms=5
            )
            assert await static_topics.mappings(caller, "T") == known
            detail = known["broker-a"].mapping_detail
            assert detail is not None
            assert sorted(detail.hosted_queues) == [0, 1, 2]
            assert (detail.epoch, detail.total_queues) == (1_005, 3)
            again = await static_topics.move_queues(caller, "T", brokers=["broker-a"], now_ms=5)
            moved = again["broker-a"].mapping_detail
            assert moved is not None
            assert moved.hosted_queues == detail.hosted_queues

    run(story())


def test_what_cannot_be_is_refused_in_clear_words() -> None:
    async def story() -> None:
        async with operating() as (_, caller):
            with pytest.raises(TopicNotFound):
                await static_topics.move_queues(caller, "T", brokers=["broker-a"], now_ms=5)
            with pytest.raises(UsageError, match="no broker nowhere"):
                await static_topics.create(caller, "T", queues=2, brokers=["nowhere"], now_ms=5)
            with pytest.raises(UsageError):
                await static_topics.create(caller, "bad name!", queues=2, brokers=(), now_ms=5)
            await topic_changes.create(caller, "usual")
            with pytest.raises(UsageError, match="is not static"):
                await static_topics.create(caller, "usual", queues=2, brokers=(), now_ms=5)
            assert await static_topics.mappings(caller, "nothing") == {}

    run(story())
