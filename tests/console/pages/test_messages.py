"""Messages are found in every way, and one is shown with all that is known of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sprocket import Message
from sprocket.console.web.desk import ReadOnlyConsole
from sprocket.schemas.choice import choose
from sprocket.schemas.framing import join
from tests.console.browsing import Browser, browsed

EVIL = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"
SENT: list[Message | bytes] = [
    Message("orders", b'{"n": 1}', tag="new", keys=["o-1"], properties={EVIL: EVIL}),
    Message("orders", EVIL.encode(), keys=["o-2"]),
    Message("orders", b"\xff\x00", keys=["o-3"]),
]


def test_messages_are_found_by_all_that_is_known_of_them() -> None:
    async def story(browser: Browser) -> None:
        await browser.open("/messages")
        assert "Nothing is searched yet" in browser.text()
        await browser.press("Search")
        assert "name the topic first" in browser.text()

        await browser.open("/messages?topic=orders")
        assert sorted(row["body"] for row in browser.rows()) == [
            EVIL[:89] + "…" if len(EVIL) > 90 else EVIL,
            "ff 00",
            '{"n": 1}',
        ]

        await browser.open("/messages?topic=orders&way=key&key=o-1")
        (row,) = browser.rows()
        assert (row["tag"], row["keys"]) == ("new", "o-1")
        await browser.open(f"/messages?way=id&id={row['id']}")
        assert [each["id"] for each in browser.rows()] == [row["id"]]
        broker, queue = row["place"].split(":")
        await browser.open(
            f"/messages?topic=orders&way=offset&broker={broker}&queue={queue}&offset=0"
        )
        assert row["id"] in [each["id"] for each in browser.rows()]
        await browser.open("/messages?topic=orders&way=time&since=2000-01-01T00:00")
        assert len(browser.rows()) == 3
        await browser.open("/messages?topic=orders&way=key&key=o-9")
        assert "No message is found" in browser.text()
        await browser.open("/messages?topic=orders&way=time&since=then")
        assert "a time is such as" in browser.text()

    browsed(story, messages={"orders": SENT})


def test_a_message_is_shown_sent_again_and_downloaded() -> None:
    async def story(browser: Browser) -> None:
        await browser.open("/message")
        assert "No message is chosen" in browser.text()
        await browser.open("/messages?topic=orders&way=key&key=o-1")
        (row,) = browser.rows()
        await browser.open(row["id_link"])
        text = browser.text()
        assert '{\n  "n": 1\n}' in text
        assert "No group consumes this topic." in text
        shown: dict[str, Any] = {each.get("name"): each.get("value") for each in browser.rows()}
        assert shown[EVIL] == EVIL

        await browser.press("Download the body")
        assert browser.user.download.http_responses[-1].content == b'{"n": 1}'

        await browser.press("Send again")
        await browser.press("Check")
        await browser.press("Confirm")
        await browser.open("/messages?topic=orders&way=key&key=o-1")
        assert len(browser.rows()) == 2

        await browser.open(f"/message?id={row['id'][:16]}00000000000FFFFF")
        assert "There is no such thing" in browser.text()

    browsed(story, messages={"orders": SENT})


def test_a_read_only_console_changes_nothing() -> None:
    async def story(browser: Browser) -> None:
        await browser.open("/topic?name=orders")
        desk = browser.console.desk
        with pytest.raises(ReadOnlyConsole, match="--read-only"):
            await desk.ask(desk.sessions.anybody, "topics.delete", {"topic": "orders"})
        with pytest.raises(AssertionError, match="switched off"):
            await browser.press("Delete")

    browsed(story, messages={"orders": [b"1"]}, is_read_only=True)


def test_a_body_is_shown_by_its_schema(tmp_path: Path) -> None:
    (tmp_path / "3.json").write_text("{}")
    codec = choose(None, registry=tmp_path).codec()

    async def story(browser: Browser) -> None:
        shown = []
        for key in ("o-1", "o-2"):
            await browser.open(f"/messages?topic=orders&way=key&key={key}")
            await browser.open(browser.rows()[0]["id_link"])
            shown.append(browser.text())
        assert '{\n  "n": 7\n}' in shown[0]
        assert "no 4.avsc" in shown[1]

    sent = [
        Message("orders", join(3, b'{"n":7}'), keys=["o-1"]),
        Message("orders", join(4, b"x"), keys=["o-2"]),
    ]
    browsed(story, messages={"orders": [*sent]}, bodies=codec)
