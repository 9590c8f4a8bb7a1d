"""The list of topics: found by a part of the name, made, and asked for a page at a time."""

from __future__ import annotations

import pytest

from sprocket.admin import topic_changes, topics, volumes
from sprocket.admin.caller import Caller
from sprocket.protocol.bodies import TopicConfig
from tests.console.browsing import Browser, browsed


def test_topics_are_listed_searched_and_created() -> None:
    async def story(browser: Browser) -> None:
        await browser.open("/topics")
        assert [row["topic"] for row in browser.rows()] == ["orders", "payments"]
        assert browser.rows()[0]["topic_link"] == "/topic?name=orders"

        await browser.fill(Search_topics="PAY")
        assert [row["topic"] for row in browser.rows()] == ["payments"]

        await browser.press("Create a topic")
        await browser.fill(**{"Topic *": "pay-back", "Queues": 3})
        await browser.press("Check")
        assert "This would change:" in browser.text()
        assert "pay-back" not in await names(browser)
        await browser.press("Confirm")
        assert "pay-back" in await names(browser)

        await browser.open("/topics?search=nobody")
        assert "No topic has this name" in browser.text()

    browsed(story, messages={"orders": [b"1"], "payments": [b"2"]})


def test_of_ten_thousand_topics_only_those_that_are_shown_are_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def all_names(caller: Caller, *, with_internal: bool = False) -> list[str]:
        return [f"topic-{number:05}" for number in range(10_000)]

    async def settings(caller: Caller, topic: str) -> dict[str, TopicConfig]:
        asked.append(topic)
        return {"broker-a": TopicConfig(topic_name=topic)}

    async def groups_of(caller: Caller, topic: str) -> list[str]:
        return []

    monkeypatch.setattr(topics, "names", all_names)
    monkeypatch.setattr(topic_changes, "settings", settings)
    monkeypatch.setattr(volumes, "groups_of", groups_of)

    async def story(browser: Browser) -> None:
        await browser.open("/topics")
        assert "1 to 25 of 10\u202f000" in browser.text()
        assert asked == [f"topic-{number:05}" for number in range(25)]
        await browser.press("chevron_right")
        assert browser.rows()[0]["topic"] == "topic-00025"
        assert "26 to 50 of 10\u202f000" in browser.text()
        await browser.press("chevron_left")
        assert browser.rows()[0]["topic"] == "topic-00000"
        await browser.fill(Search_topics="9999")
        assert [row["topic"] for row in browser.rows()] == ["topic-09999"]
        assert len(asked) == 76

    browsed(story)


async def names(browser: Browser) -> list[str]:
    """What topics there are."""
    desk = browser.console.desk
    page = await desk.ask(desk.sessions.anybody, "topics.list", {})
    return [each.topic for each in page.items]


def test_a_topic_is_shown_changed_sent_to_and_deleted(caplog: pytest.LogCaptureFixture) -> None:
    async def story(browser: Browser) -> None:
        await browser.open("/topic")
        assert "No topic is chosen" in browser.text()
        await browser.open("/topic?name=orders")
        rows = browser.rows()
        assert sum(row.get("messages", 0) for row in rows) == 1
        assert [row["permission"] for row in rows if "permission" in row] == ["read, write"]

        await browser.press("Send a test message")
        await browser.fill(Body="two")
        await browser.press("Check")
        await browser.press("Confirm")
        assert sum(row.get("messages", 0) for row in browser.rows()) == 2

        await browser.press("Change")
        await browser.press("Check")
        assert "name what is to change" in browser.text()
        await browser.fill(Permission="r")
        await browser.press("Check")
        await browser.press("Confirm")
        assert "read" in [row.get("permission") for row in browser.rows()]

        await browser.press("Delete")
        assert "orders" in await names(browser)
        await browser.press("Confirm")
        assert "orders" not in await names(browser)

    browsed(story, messages={"orders": [b"1"]})
    lines = [each.getMessage() for each in caplog.records if "change " in each.getMessage()]
    assert [line.split()[1] for line in lines] == [
        "messages.send",
        "topics.change",
        "topics.delete",
    ]
    assert "done, 1 changes: {'topic': 'orders'}" in lines[2]
