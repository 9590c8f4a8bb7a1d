"""Messages sent once more, against a node."""

from __future__ import annotations

import pytest

from sprocket.admin import messages, resend
from sprocket.base.errors import TopicNotFound, UsageError
from tests.admin.parts import shop, until
from tests.support import run


def test_a_dead_letter_goes_back_to_its_group_with_what_its_sender_set() -> None:
    async def story() -> None:
        async with shop() as there:
            caller = there.caller
            with pytest.raises(TopicNotFound):
                [each async for each in resend.dead_letters(caller, "g")]
            there.fails.add(b"bad")
            await there.sell(b"good", b"bad")
            async with there.consumer():
                await until(lambda: len(there.seen) == 2)
                bad = there.seen[1]

                async def is_given_up() -> bool:
                    try:
                        return bool([each async for each in resend.dead_letters(caller, "g")])
                    except TopicNotFound:
                        return False

                await until(is_given_up)
                (letter,) = [each async for each in resend.dead_letters(caller, "g")]
                assert resend.origin_of(letter) == "orders"
                assert resend.user_properties(letter) == {"shop": "7"}
                there.fails.clear()
                await resend.check_takes_retries(caller, "g")
                put = await resend.put_back(caller, letter, "g")
                await until(lambda: len(there.seen) == 3)
            again = there.seen[2]
            assert (again.body, again.topic, again.tag, again.keys) == (
                b"bad", "orders", "t", ["k"],
            )  # fmt: skip
            assert again.properties["shop"] == "7"
            assert again.reconsume_times == 0
            assert again.properties["UNIQ_KEY"] == bad.properties["UNIQ_KEY"] == put.message_id
            assert put.topic == "%RETRY%g"

    run(story())


def test_a_message_is_sent_as_a_new_one() -> None:
    async def story() -> None:
        async with shop() as there:
            caller = there.caller
            (place,) = await there.sell(b"once")
            message = await messages.view(caller, place)
            assert resend.place_of(message) == place
            sent = await resend.resend(caller, message)
            assert (sent.topic, sent.queue_offset) == ("orders", 1)
            new = await messages.view(caller, sent.offset_id)
            assert (new.body, new.tag, new.keys) == (b"once", "t", ["k"])
            assert new.properties["UNIQ_KEY"] == sent.message_id
            assert sent.message_id != message.properties["UNIQ_KEY"]
            with pytest.raises(TopicNotFound):
                await resend.resend(caller, message, topic="nothing")

    run(story())


def test_a_group_that_consumes_in_order_takes_no_retries() -> None:
    async def story() -> None:
        async with shop() as there:
            await there.sell(b"1")
            async with there.consumer(ordered=True):
                await until(lambda: len(there.seen) == 1)
                with pytest.raises(UsageError, match="uses ordered consumption"):
                    await resend.check_takes_retries(there.caller, "g")
            await resend.check_takes_retries(there.caller, "g")

    run(story())
