"""A page, and somebody who has it open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from nicegui import ui

from sprocket.admin.brokers import BrokerProcess
from sprocket.base.errors import SprocketError
from sprocket.console.api.problems import problem_of
from sprocket.console.history.sampler import HistorySampler
from sprocket.console.web.desk import ConsoleDesk, ReadOnlyConsole, SessionEnded
from sprocket.console.web.login_routes import LOGIN_PATH
from sprocket.console.web.sessions import ConsoleSession


@dataclass(frozen=True, slots=True)
class ConsolePage:
    """A page of the console. What it shows is chosen by the parameters of its address.

    Attributes:
        path: where it is.
        title: in the navigation and above the page.
        icon: of the navigation, a name of Google's Material Icons; None for a page that others
            lead to.
        build: makes its content, inside the frame.
    """

    path: str
    title: str
    icon: str | None
    build: Callable[[PageVisit], Awaitable[None]]


class PageVisit:
    """One page that one browser has open.

    Args:
        parameters: those of the address.

    Attributes:
        path: the path of the page.
    """

    def __init__(
        self, desk: ConsoleDesk, session: ConsoleSession, page: ConsolePage,
        parameters: Mapping[str, str],
    ) -> None:  # fmt: skip
        self._desk = desk
        self._session = session
        self._page = page
        self.path = page.path
        self._parameters = dict(parameters)
        self._body = ui.column().classes("page-body")

    def __getitem__(self, name: str) -> str:
        """A parameter; empty if the address does not have it."""
        return self._parameters.get(name, "")[:2_000]

    def keep(self, **parameters: str) -> None:
        """Keeps what was chosen on the page, for when its content is made anew."""
        self._parameters.update(parameters)

    @property
    def user(self) -> str | None:
        """The user; None where the brokers know none."""
        return self._session.user

    @property
    def is_open(self) -> bool:
        """Whether the session that has the page open has not ended."""
        return self._session.may_ask(self._desk.now_ms())

    @property
    def may_change(self) -> bool:
        """Whether the console changes anything at all; the brokers decide about the user."""
        return not self._desk.settings.is_read_only

    @property
    def sampler(self) -> HistorySampler:
        """The console's history, and the last state of the brokers."""
        return self._desk.sampler

    @property
    def desk(self) -> ConsoleDesk:
        """What all pages share."""
        return self._desk

    def now_ms(self) -> int:
        """The time, ms since 1970 UTC."""
        return self._desk.now_ms()

    async def ask(self, name: str, /, **given: Any) -> Any:
        """Runs an operation of the table in the name of who has the page open.

        Raises:
            SprocketError: it failed, or is not allowed.
        """
        return await self._desk.ask(self._session, name, given)

    async def processes(self) -> list[BrokerProcess]:
        """The brokers with their figures, asked in the name of who has the page open.

        Raises:
            SprocketError: no name server answers, or it is not allowed.
        """
        return await self._desk.processes(self._session)

    async def change(self, name: str, /, **given: Any) -> Any:
        """Runs a change that was confirmed, and writes a line about it into the console's log.

        Raises:
            SprocketError: it failed, or is not allowed.
        """
        try:
            result = await self.ask(name, **given)
        except SprocketError as error:
            self._desk.record(self._session.caller, name, given, f"failed: {error}")
            raise
        count = len(result.changes)
        self._desk.record(self._session.caller, name, given, f"done, {count} changes")
        return result

    async def show(self) -> None:
        """Makes the content of the page anew."""
        self._body.clear()
        with self._body:
            try:
                await self._page.build(self)
            except SprocketError as error:
                show_problem(error)

    def open(self, path: str, **parameters: str) -> None:
        """Leads the browser to another page."""
        ui.navigate.to(link_to(path, **parameters))


def link_to(path: str, **parameters: str) -> str:
    """The address of a page with its parameters."""
    return f"{path}?{urlencode(parameters)}" if parameters else path


def show_problem(error: SprocketError) -> None:
    """Shows why something failed, and which setting would change that."""
    problem = problem_of(error)
    title, setting = problem.title, problem.setting
    if isinstance(error, SessionEnded):
        title = "You are not logged in any more"
    elif isinstance(error, ReadOnlyConsole):
        title = "The console only reads"
    with ui.card().classes("problem").props("flat bordered role=alert"):
        ui.label(title).classes("problem-title")
        ui.label(problem.detail).classes("problem-detail")
        for broker, text in problem.failed.items():
            ui.label(f"{broker}: {text}").classes("problem-detail")
        if setting:
            ui.label(f"What decides: {setting}").classes("problem-detail")
        if isinstance(error, SessionEnded):
            ui.link("Log in", LOGIN_PATH)
