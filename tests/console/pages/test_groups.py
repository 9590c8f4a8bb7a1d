"""Groups: their lag is seen and steered, and their dead letters are sent back."""

from __future__ import annotations

import asyncio

from sprocket import Message, Producer, PushConsumer
from tests.console.browsing import Browser, browsed
from tests.support import LONGEST


async def consumed(browser: Browser, count: int) -> None:
    """Has the group `billing` consume messages; those with `bad` in them become dead letters."""
    done = asyncio.Event()
    seen: list[bytes] = []
    consumer = PushConsumer("billing", nameservers=browser.nameserver, start="first")

    @consumer.on("orders")
    async def bill(message: Message) -> None:
        seen.append(message.body)
        if len(seen) >= count:
            done.set()

    async with consumer:
        await asyncio.wait_for(done.wait(), LONGEST)
        await browser.open("/group?name=billing")
        text = browser.text()
        assert "push" in text
        await browser.press("State")
        assert "PROP_CONSUMEORDERLY" in browser.text()
        await browser.press("Stacks")


def test_a_group_is_listed_shown_and_reset() -> None:
    async def story(browser: Browser) -> None:
        await consumed(browser, 3)
        await browser.open("/groups")
        (row,) = browser.rows()
        assert (row["group"], row["lag"], row["group_link"]) == (
            "billing",
            0,
            "/group?name=billing",
        )

        await browser.open("/group?name=billing")
        assert "none is online" in browser.text()
        await browser.press("Reset offsets")
        await browser.fill(To="first")
        await browser.press("Check")
        assert "This would change:" in browser.text()
        assert lag(browser) == 0
        await browser.press("Confirm")
        assert lag(browser) == 3

        await browser.press("Skip the lag")
        await browser.press("Check")
        await browser.press("Confirm")
        assert lag(browser) == 0

        await browser.press("Copy offsets to a group")
        await browser.fill(**{"Target *": "audit"})
        await browser.press("Check")
        await browser.press("Confirm")
        await browser.open("/groups?search=aud")
        assert [row["group"] for row in browser.rows()] == ["audit"]

        sampler = browser.console.desk.sampler
        await sampler.sample()
        now_ms = browser.console.desk.now_ms()
        assert any("orders" in name for name in sampler.history.of_group("billing", 0, now_ms))

        await browser.open("/group")
        assert "No group is chosen" in browser.text()
        await browser.open("/group?name=nobody")
        assert "There is no such thing" in browser.text()

    browsed(story, messages={"orders": [b"1", b"2", b"3"]})


def lag(browser: Browser) -> int:
    """The lag of all queues that the page shows."""
    return sum(row["lag"] for row in browser.rows() if "lag" in row)


def test_dead_letters_are_searched_and_chosen_ones_sent_back() -> None:
    async def story(browser: Browser) -> None:
        desk = browser.console.desk
        anybody = desk.sessions.anybody
        await desk.ask(anybody, "groups.create", {"group": "billing"})
        await desk.ask(anybody, "topics.create", {"topic": "%DLQ%billing", "queues": 1})
        await desk.ask(anybody, "topics.create", {"topic": "%RETRY%billing", "queues": 1})
        async with Producer("t", nameservers=browser.nameserver) as producer:
            for text in (b"good", b"<b>bad</b>"):
                await producer.send(Message("%DLQ%billing", text, keys=["k"]))

        await browser.open("/dead-letters")
        assert "No group is chosen" in browser.text()
        await browser.open("/dead-letters?group=billing")
        assert len(browser.rows()) == 2
        await browser.fill(Search_in_these="<B>")
        (row,) = browser.rows()
        assert row["body"] == "<b>bad</b>"

        await browser.press("Send chosen back")
        assert browser.user.notify.contains("Choose letters in the table first.")
        browser.choose(row)
        await browser.press("Send chosen back")
        assert "This would change:" in browser.text()
        await browser.press("Confirm")
        queues = await desk.ask(anybody, "topics.queues", {"topic": "%RETRY%billing"})
        assert sum(each.max_offset for each in queues.items) == 1

        await browser.open("/dead-letters?group=nobody")
        assert "There is no such thing" in browser.text()

    browsed(story)
