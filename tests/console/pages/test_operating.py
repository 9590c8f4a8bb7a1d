"""What waits, users and policies, settings, filters, the audit log."""

from __future__ import annotations

import time
from pathlib import Path

from sprocket import Message
from sprocket.audit.audit_log import FILE
from sprocket.audit.entries import AuditEntry
from tests.console.browsing import Browser, browsed
from tests.console.web.test_login_routes import ADMIN, CLOSED, log_in


def test_delayed_messages_are_counted() -> None:
    late = Message("orders", b"later", deliver_at=int(time.time() * 1_000) + 3_600_000)

    async def story(browser: Browser) -> None:
        await browser.open("/waiting")
        waiting = [row for row in browser.rows() if "waiting" in row]
        assert [row["waiting"] for row in waiting] == [1, 1]
        assert waiting[1]["topic"] == "orders"
        assert "No transaction is open" in browser.text()
        assert "None is given up" in browser.text()

    browsed(story, messages={"orders": [b"1", late]})


def test_users_are_made_and_may_do_what_they_are_granted() -> None:
    async def story(browser: Browser) -> None:
        assert await log_in(browser, ADMIN) == 303
        await browser.open("/access")
        assert {row["user"] for row in browser.rows()} == {"admin"}

        await browser.press("Create a user")
        await browser.fill(**{"User *": "anne", "Password": "a-long-secret"})
        await browser.press("Check")
        await browser.press("Confirm")
        assert {row["user"] for row in browser.rows() if "kind" in row} == {"admin", "anne"}
        assert "a-long-secret" not in browser.text()

        await browser.press("Grant or deny")
        await browser.fill(**{"User *": "anne", "Resource *": "Topic:orders", "Actions *": "Pub"})
        await browser.press("Check")
        await browser.press("Confirm")
        (policy,) = {row["resource"] for row in browser.rows() if "resource" in row}
        assert policy == "Topic:orders"

        await browser.fill(Who="anne", With="Topic:orders")
        await browser.press("Test")
        assert {row["verdict"] for row in browser.rows() if "verdict" in row} == {"allowed"}

        # The new user sees what it may, and is told what it may not.
        browser.http.cookies.clear()
        assert await log_in(browser, ("anne", "a-long-secret")) == 303
        await browser.open("/settings")
        assert "It is not allowed" in browser.text()
        assert "What decides: the user's policies" in browser.text()

    browsed(story, configs=[CLOSED])


def test_settings_are_searched_and_changed() -> None:
    async def story(browser: Browser) -> None:
        await browser.open("/settings?search=autoCreateTopic")
        (row,) = browser.rows()
        assert (row["setting"], row["value"]) == ("autoCreateTopicEnable", "true")
        await browser.press("Change settings")
        await browser.fill(**{"Settings *": "autoCreateTopicEnable=false"})
        await browser.press("Check")
        await browser.press("Confirm")
        await browser.open("/settings?search=autoCreateTopic")
        assert browser.rows()[0]["value"] == "false"
        await browser.open("/filters")
        assert "There are no filters in Python" in browser.text()
        await browser.open("/access")
        assert "The brokers know no users" in browser.text()
        await browser.open("/reports")
        assert "No folder of reports is known" in browser.text()
        await browser.open("/audit")
        assert "--audit FOLDER" in browser.text()

    browsed(story)


def test_what_was_changed_has_a_line_on_the_page_of_the_audit_log(tmp_path: Path) -> None:
    entry = AuditEntry(
        time="2030-01-01T00:00:00.000Z", server="broker-a", user="anne", address="10.0.0.1:5",
        client="", request="UPDATE_AND_CREATE_TOPIC", code=17, named={"topic": "made"}, result=0,
    )  # fmt: skip
    (tmp_path / FILE).write_bytes(entry.encode())

    async def story(browser: Browser) -> None:
        await browser.open("/audit")
        (row,) = browser.rows()
        assert (row["user"], row["named"], row["result"]) == ("anne", "topic made", "done")

    browsed(story, audit_folder=tmp_path)
