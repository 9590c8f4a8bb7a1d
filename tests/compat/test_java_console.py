"""The pages of the web console over RocketMQ's own name server and broker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sprocket.console.pages import PAGES
from tests.compat.javaland import JavaBroker, JavaNameServer, require_java
from tests.console.browsing import Browser, browsing, send
from tests.support import run

pytestmark = pytest.mark.java

#: What RocketMQ's brokers do not have, by page: what it says then.
ABSENT = {"/access": "", "/waiting": "", "/filters": "There are no filters in Python"}


def test_every_page_shows_a_cluster_of_rocketmq_s(tmp_path: Path) -> None:
    require_java()

    async def story(browser: Browser) -> None:
        await send(browser.nameserver, {"orders": [b'{"n": 1}']})
        for _ in range(60):  # a broker that has just started may not have its figures yet
            await browser.open("/")
            (row,) = (row for row in browser.rows() if row.get("role") == "master")
            if row["state"] == "serves":
                break
            await asyncio.sleep(1)
        assert (row["state"], row["version"]) == ("serves", "V5_3_3")
        for page in PAGES:
            name = {"/topic": "orders", "/group": "billing"}.get(page.path, "")
            await browser.open(f"{page.path}?name={name}")
            if page.path not in ABSENT:
                assert "A broker failed" not in browser.text(), page.path

        await browser.open("/topics?search=orders")
        assert [row["topic"] for row in browser.rows()] == ["orders"]
        await browser.open("/topic?name=orders")
        await browser.press("Send a test message")
        await browser.press("Check")
        await browser.press("Confirm")
        assert sum(row.get("messages", 0) for row in browser.rows()) == 2
        await browser.open("/settings?search=fileReservedTime")
        assert "fileReservedTime" in [row["setting"] for row in browser.rows()]

        await browser.open("/groups")
        await browser.press("Create a group")
        await browser.fill(**{"Group *": "billing"})
        await browser.press("Check")
        await browser.press("Confirm")
        assert "billing" in [row["group"] for row in browser.rows()]

    async def main(nameserver: str) -> None:
        async with browsing(nameserver, timeout_ms=60_000) as browser:
            await story(browser)

    with JavaNameServer(tmp_path) as servers, JavaBroker(tmp_path, servers.address):
        run(main(servers.address))
