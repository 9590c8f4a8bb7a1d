"""The console's pages as a user has them open, without a browser: NiceGUI's simulated user."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the console needs the extra console")

import httpx
from nicegui import ui
from nicegui.functions.download import download
from nicegui.functions.navigate import Navigate
from nicegui.functions.notify import notify
from nicegui.testing import User
from nicegui.testing.general import nicegui_reset_globals

from sprocket import Message, Producer, Standalone
from sprocket.client.config import ProducerConfig
from sprocket.console.console import Console
from sprocket.console.web.settings import ConsoleSettings
from sprocket.protocol.signing import Signer
from tests.support import run

Given = dict[str, Any]


class Browser:
    """A simulated user of a console.

    Attributes:
        http: sends plain requests, with the user's cookies.
        user: NiceGUI's.
    """

    def __init__(self, console: Console, http: httpx.AsyncClient, nameserver: str) -> None:
        self.console = console
        self.http = http
        self.user = User(http)
        self.nameserver = nameserver

    async def open(self, path: str) -> None:
        """Opens a page and waits until its content is there."""
        await self.user.open(path)
        await self.settled()

    async def settled(self) -> None:
        """Waits until nothing that the page has begun is left to do."""
        from nicegui import background_tasks

        for _ in range(600):
            await asyncio.sleep(0.01)
            body = [e for e in self._elements() if "page-body" in e.classes]
            pending = [
                task for task in background_tasks.running_tasks
                if not any(word in task.get_coro().__qualname__ for word in ("loop", "Outbox"))
            ]  # fmt: skip
            if body and body[0].default_slot.children and not pending:
                return
        raise AssertionError(f"the page does not come to rest: {pending}")

    def _elements(self) -> list[Any]:
        assert self.user.client is not None
        return list(self.user.client.elements.values())

    def rows(self) -> list[dict[str, Any]]:
        """The rows of all tables of the page."""
        return [row for each in self._elements() if isinstance(each, ui.table) for row in each.rows]

    def text(self) -> str:
        """All texts of the page, in lines."""
        said = [str(each.text) for each in self._elements() if hasattr(each, "text")]
        return "\n".join(said)

    def field(self, label: str) -> Any:
        """An input, a switch or a choice by its label; the newest of several."""
        found = [
            each for each in self._elements()
            if hasattr(each, "value") and label in _labels(each)
        ]  # fmt: skip
        assert found, f"no field {label!r}"
        return found[-1]

    async def fill(self, **values: Any) -> None:
        """Fills fields; `_` in labels stands for a space."""
        for label, value in values.items():
            self.field(label.replace("_", " ")).set_value(value)
        await self.settled()

    def choose(self, *rows: dict[str, Any]) -> None:
        """Chooses rows of the table that lets one choose."""
        for each in self._elements():
            if isinstance(each, ui.table) and each.selection is not None:
                each.selected = list(rows)

    async def press(self, label: str) -> None:
        """Presses the newest visible button of a label, and waits for what it does."""
        found = [
            each for each in self._elements()
            if isinstance(each, ui.button) and each.visible
            and label in (each.text, each.props.get("icon"))
        ]  # fmt: skip
        assert found, (
            f"no button {label!r}: {[b.text for b in self._elements() if isinstance(b, ui.button)]}"
        )
        assert found[-1].enabled, f"{label!r} is switched off"
        with self.user:
            for listener in list(found[-1]._event_listeners.values()):
                if listener.type == "click":
                    found[-1]._handle_event({"listener_id": listener.id, "args": {}})
        await self.settled()


def _labels(element: Any) -> tuple[Any, Any]:
    return element.props.get("label"), getattr(element, "text", None)


@asynccontextmanager
async def browsing(nameserver: str, **settings: Any) -> AsyncIterator[Browser]:
    """A console over a name server, with a user. Modules stay as they are loaded."""
    modules = {name: each for name, each in sys.modules.items() if name.startswith("sprocket")}
    os.environ["NICEGUI_USER_SIMULATION"] = "true"
    try:
        with nicegui_reset_globals():
            console = Console(ConsoleSettings([nameserver], **settings))
            transport = httpx.ASGITransport(console.app)
            async with (
                console,
                _life(console.app),
                httpx.AsyncClient(transport=transport, base_url="http://localhost") as http,
            ):
                yield Browser(console, http, nameserver)
    finally:
        os.environ.pop("NICEGUI_USER_SIMULATION", None)
        ui.navigate, ui.notify, ui.download = Navigate(), notify, download  # type: ignore[misc,assignment]
        sys.modules.update(modules)


@asynccontextmanager
async def _life(app: Any) -> AsyncIterator[None]:
    """Starts and stops an application as a web server does."""
    asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    task = asyncio.ensure_future(app({"type": "lifespan"}, asked.get, told.put))
    await asked.put({"type": "lifespan.startup"})
    assert (await told.get())["type"] == "lifespan.startup.complete"
    try:
        yield
    finally:
        await asked.put({"type": "lifespan.shutdown"})
        await told.get()
        await task


def browsed(
    test: Callable[[Browser], Awaitable[None]],
    *,
    messages: dict[str, list[Message | bytes]] | None = None,
    configs: Any = (),
    keys: tuple[str, str] | None = None,
    **settings: Any,
) -> None:
    """Runs a test with a console over a node of its own.

    Args:
        messages: sent before, by topic.
        configs: of the node.
        keys: those that send them, of a node that knows users.
        settings: of the console.
    """

    async def main() -> None:
        async with Standalone(configs=configs) as node:
            await send(node.nameserver_address, messages or {}, keys)
            async with browsing(node.nameserver_address, **settings) as browser:
                await test(browser)

    run(main())


async def send(
    nameserver: str,
    messages: dict[str, list[Message | bytes]],
    keys: tuple[str, str] | None = None,
) -> None:
    """Sends messages to topics, which are made so."""
    if not messages:
        return
    access_key, secret_key = keys or (None, None)
    config = ProducerConfig(access_key=access_key, secret_key=secret_key)
    async with Producer("tests", nameservers=nameserver, config=config) as producer:
        for topic, those in messages.items():
            for each in those:
                await producer.send(Message(topic, each) if isinstance(each, bytes) else each)


def signer(keys: tuple[str, str]) -> Signer:
    """The signer of keys."""
    return Signer(*keys)
