"""The overview, with a broker, and with none."""

from __future__ import annotations

from sprocket.console.pages import PAGES
from tests.console.browsing import Browser, browsed, browsing
from tests.support import run


def test_brokers_are_there_with_their_figures_and_plots() -> None:
    async def story(browser: Browser) -> None:
        await browser.console.desk.sampler.sample()
        await browser.open("/")
        (row,) = browser.rows()
        assert (row["broker"], row["role"], row["state"]) == ("broker-a", "master", "serves")
        assert "Fullest disk" in browser.text()
        assert "Messages in per second" in browser.text()
        sampler = browser.console.desk.sampler
        lines = sampler.history.of_figure("put", 0, browser.console.desk.now_ms())
        assert list(lines) == ["broker-a"]

    browsed(story)


def test_without_a_name_server_the_page_says_why() -> None:
    async def main() -> None:
        async with browsing("127.0.0.1:1", timeout_ms=300) as browser:
            await browser.open("/")
            assert "127.0.0.1:1" in browser.text()
            assert "A broker failed" in browser.text()

    run(main())


def test_pages_are_said_once() -> None:
    assert len({page.path for page in PAGES}) == len(PAGES)
    assert PAGES[0].path == "/"
