"""The console in a real Chromium: hostile texts stay texts, nothing is fetched from elsewhere.

Pages fit phones, keys are enough, and other sites can do nothing. The guide's pictures are made
here.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

pytest.importorskip("nicegui", reason="the console needs the extra console")

from sprocket import Message, PushConsumer, StoredMessage, Tracer
from sprocket.client import blocking
from sprocket.console.pages import PAGES
from tests.chromium import chromium, needs_chromium
from tests.support import LONGEST

__all__ = ["chromium"]

pytestmark = [pytest.mark.process, needs_chromium]

#: Where `make screenshots` wants the pictures.
PICTURES = os.environ.get("SPROCKET_SCREENSHOTS")
EVIL = "<script>window.owned=1</script><img src=x onerror='window.owned=2'>{{1+1}}`${3}`"
#: A machine may have much else to do.
PATIENCE_MS = 120_000


class Node(NamedTuple):
    """A node with its console.

    Attributes:
        url: of the console, without a slash at its end.
        message: the path of the hostile message.
    """

    url: str
    nameserver: str
    message: str


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    command = [
        sys.executable, "-m", "sprocket.cli", "standalone", "--console", "--console-port", "0",
        "--nameserver-port", "0", "--broker-port", "0", "--grpc-port", "off",
        "--store", str(tmp_path_factory.mktemp("node")),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"name server (\S+), .*console (http://\S+)/$", line)
            assert found, line
            yield Node(found[2], found[1], _sent(found[1]))
        finally:
            process.terminate()
        assert process.wait(60) == 0


def _sent(nameserver: str) -> str:
    """Sends messages, has some consumed, and returns the offset id of the hostile one."""
    with blocking.Producer("shop", nameservers=nameserver) as producer:
        for number in range(40):
            body = b'{"order": %d, "item": "coffee", "price": 4.2}' % number
            producer.send(Message("orders", body, tag="new", keys=[f"o-{number}"]))
        sent = producer.send(
            Message("hostile", EVIL.encode(), tag=EVIL, keys=["k"], properties={EVIL: EVIL})
        )
        producer.send(Message("payments", b"\x00\xff\x10"))
    done = threading.Event()
    consumer = blocking.PushConsumer("billing", nameservers=nameserver, start="first")

    @consumer.on("orders")
    def bill(message: Message) -> None:
        done.set()

    with consumer:
        assert done.wait(LONGEST)
    with blocking.Producer("shop", nameservers=nameserver) as producer:
        for number in range(40, 75):
            producer.send(Message("orders", b'{"order": %d}' % number, keys=[f"o-{number}"]))
    return str(sent.offset_id)


async def _traced(nameserver: str) -> str:
    """Has an order sent and consumed with traces; returns its offset id."""
    is_shipped = asyncio.Event()

    async def ship(message: StoredMessage) -> None:
        if message.keys == ["o-75"]:
            is_shipped.set()

    body = b'{"order": 75, "item": "coffee", "price": 4.2, "to": {"city": "Lisbon"}}'
    async with Tracer(nameservers=nameserver) as tracer:
        async with tracer.producer("shop", nameservers=nameserver) as producer:
            sent = await producer.send(Message("orders", body, tag="new", keys=["o-75"]))
        async with PushConsumer("shipping", nameservers=nameserver, start="first") as consumer:
            consumer.subscribe("orders", listener=tracer.around("shipping", ship))
            async with asyncio.timeout(LONGEST):
                await is_shipped.wait()
    return str(sent.offset_id)


def _samples(page: Watched, node: Node) -> None:
    """Sends for a minute, so that plots have something to show."""
    page.open("/group?name=billing")
    with blocking.Producer("shop", nameservers=node.nameserver) as producer:
        for step in range(45):
            for number in range(1 + step % 40):
                producer.send(Message("orders", b'{"order": %d}' % number, keys=[f"o-{number}"]))
            page.page.wait_for_timeout(1_000)


class Watched:
    """A page, with all that went wrong on it."""

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self._url = url
        self.faults: list[str] = []
        own = (url, url.replace("http://", "ws://"), "data:", "blob:")
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        page.on(
            "console",
            lambda said: self.faults.append(said.text) if said.type == "error" else None,
        )
        page.on(
            "request",
            lambda asked: None if asked.url.startswith(own) else self.faults.append(asked.url),
        )

    def open(self, path: str) -> None:
        """Opens a page and waits for its content."""
        self.page.goto(self._url + path)
        self.page.wait_for_selector(".page-body > *")

    def run(self, script: str) -> Any:
        """The value of a script."""
        return self.page.evaluate(script)


def watched(chromium: Any, node: Node, **options: Any) -> Watched:
    options = {"viewport": {"width": 1100, "height": 700}, **options}
    return Watched(chromium.new_context(**options).new_page(), node.url)


def test_hostile_texts_are_shown_and_not_run(chromium: Any, node: Node) -> None:
    page = watched(chromium, node)
    named = quote(EVIL)
    for path in (
        f"/message?id={node.message}", "/messages?topic=hostile", f"/messages?topic={named}",
        f"/topic?name={named}", f"/group?name={named}", f"/dead-letters?group={named}",
    ):  # fmt: skip
        page.open(path)
        assert page.run("window.owned") is None
        assert page.run("document.querySelectorAll('.page img, .page script').length") == 0
    page.open(f"/message?id={node.message}")
    text = page.page.inner_text(".page-body")
    assert EVIL in text
    assert text.count("<script>") >= 4  # body, tag, and a property's name and value
    assert page.faults == []


def test_every_page_loads_without_anything_from_elsewhere_and_fits_a_phone(
    chromium: Any, node: Node
) -> None:
    page = watched(chromium, node, viewport={"width": 390, "height": 760}, color_scheme="dark")
    for each in PAGES:
        name = {"/topic": "orders", "/group": "billing"}.get(each.path, "")
        page.open(f"{each.path}?name={name}&id={node.message}&topic=orders")
        wide = page.run("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, f"{each.path} is {wide} pixels wider than a phone"
        assert page.run("document.body.classList.contains('body--dark')")
    assert page.faults == []


def test_keys_are_enough_to_find_a_topic(chromium: Any, node: Node) -> None:
    page = watched(chromium, node)
    page.open("/topics")
    page.page.wait_for_selector("input:focus")
    page.page.keyboard.type("paym")
    page.page.wait_for_function("document.querySelectorAll('a.cell-link').length === 1")
    for _ in range(12):
        page.page.keyboard.press("Tab")
        if page.run("document.activeElement.className").startswith("cell-link"):
            break
    page.page.keyboard.press("Enter")
    page.page.wait_for_url("**/topic?name=payments")
    assert page.faults == []


def test_a_page_of_another_site_can_do_nothing(chromium: Any, node: Node) -> None:
    page = chromium.new_context().new_page()
    # Another name of this machine is another site for a browser.
    page.goto(node.url.replace("127.0.0.1", "localhost") + "/login")
    status = page.evaluate(
        """async url => {
            const form = {method: 'POST', mode: 'no-cors', body: 'user=a&key=b',
                          credentials: 'include'};
            const posted = await fetch(url + '/login', form).then(r => r.type, e => 'blocked');
            const socket = await new Promise(done => {
                try {
                    const it = new WebSocket(url.replace('http', 'ws')
                        + '/_nicegui_ws/socket.io/?EIO=4&transport=websocket');
                    it.onopen = () => done('open');
                    it.onerror = it.onclose = () => done('closed');
                } catch (error) { done('closed'); }
            });
            return [posted, socket];
        }""",
        node.url,
    )
    assert status[1] == "closed"
    assert status[0] in ("blocked", "opaque")


def test_the_guide_s_pictures_are_made(chromium: Any, node: Node, tmp_path: Path) -> None:
    folder = Path(PICTURES) if PICTURES else tmp_path
    with ThreadPoolExecutor() as pool:  # Playwright's loop runs in this thread
        order = pool.submit(asyncio.run, _traced(node.nameserver)).result()
    page = watched(chromium, node)
    if PICTURES:
        _samples(page, node)
    for name, path in (
        ("overview", "/"), ("message", f"/message?id={order}"), ("group", "/group?name=billing"),
    ):  # fmt: skip
        page.open(path)
        page.page.wait_for_timeout(600 if PICTURES else 0)
        page.page.screenshot(path=folder / f"console-{name}.png")
    page.open(f"/message?id={order}")
    trace = page.page.locator(".panel", has_text="What its clients say")
    trace.locator("text=consumed").wait_for()
    trace.screenshot(path=folder / "console-trace.png")
    page.open("/topic?name=orders")
    page.page.click("text=Delete")
    page.page.wait_for_selector("text=This would change:")
    page.page.wait_for_timeout(600 if PICTURES else 0)
    page.page.screenshot(path=folder / "console-change.png")
    dark = watched(chromium, node, viewport={"width": 390, "height": 760}, color_scheme="dark")
    dark.open("/group?name=billing")
    dark.page.wait_for_timeout(600 if PICTURES else 0)
    button = "getComputedStyle(document.querySelector('.q-btn--outline.text-{}')).color"
    assert dark.run(button.format("primary")) == "rgb(109, 179, 232)"
    assert dark.run(button.format("negative")) == "rgb(255, 138, 128)"
    dark.page.screenshot(path=folder / "console-phone.png")
    assert len(list(folder.glob("console-*.png"))) >= 6
    assert page.faults == dark.faults == []
