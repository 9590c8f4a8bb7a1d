"""Where brokers know users, each looks at the console in a user's own name."""

from __future__ import annotations

import json
import logging

import pytest

from sprocket.broker.config import BrokerConfig
from sprocket.console.web.desk import SessionEnded
from tests.console.browsing import Browser, browsed

ADMIN = ("admin", "secret-of-the-admin")
CLOSED = BrokerConfig(
    port=0, authentication=True, authorization=True, inner_keys=json.dumps(
        {"accessKey": ADMIN[0], "secretKey": ADMIN[1]}
    ),
    first_user=json.dumps({"username": ADMIN[0], "password": ADMIN[1]}),
)  # fmt: skip


async def log_in(browser: Browser, keys: tuple[str, str], next_path: str = "/topics") -> int:
    form = {"user": keys[0], "key": keys[1], "next": next_path}
    return (await browser.http.post("/login", data=form)).status_code


def test_a_user_logs_in_acts_and_logs_out(caplog: pytest.LogCaptureFixture) -> None:
    async def story(browser: Browser) -> None:
        turned_away = await browser.http.get("/topics?search=a")
        assert turned_away.status_code == 303
        assert turned_away.headers["location"] == "/login?next=%2Ftopics%3Fsearch%3Da"
        page = await browser.http.get(turned_away.headers["location"])
        assert 'value="/topics?search=a"' in page.text

        assert await log_in(browser, (ADMIN[0], "wrong")) == 401
        assert await log_in(browser, ("nobody", ADMIN[1])) == 401
        assert await log_in(browser, ("", "")) == 400
        assert await log_in(browser, ADMIN) == 303
        cookie = browser.http.cookies.jar
        assert [(each.name, each.has_nonstandard_attr("HttpOnly")) for each in cookie] == [
            ("sprocket-console", True)
        ]

        await browser.open("/topics")
        assert [row["topic"] for row in browser.rows()] == ["orders"]
        assert "admin" in browser.text()

        session = browser.console.desk.sessions.of_token(
            browser.http.cookies.get("sprocket-console")
        )
        assert session is not None
        assert (await browser.http.post("/logout")).status_code == 303
        with pytest.raises(SessionEnded):
            await browser.console.desk.ask(session, "topics.list", {})
        assert (await browser.http.get("/topics")).status_code == 303

    with caplog.at_level(logging.INFO):
        browsed(story, configs=[CLOSED], messages={"orders": [b"1"]}, keys=ADMIN)
    assert "'admin' logged in" in caplog.text
    assert ADMIN[1] not in caplog.text


def test_guesses_are_bounded() -> None:
    async def story(browser: Browser) -> None:
        codes = [await log_in(browser, (ADMIN[0], str(number))) for number in range(11)]
        assert codes == [401] * 10 + [400]
        assert await log_in(browser, ADMIN) == 400

    browsed(story, configs=[CLOSED])
