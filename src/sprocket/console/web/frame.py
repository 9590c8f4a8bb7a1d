"""The frame around every page: header, navigation, theme."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from nicegui import ui
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sprocket import __version__
from sprocket.console.web.desk import ConsoleDesk
from sprocket.console.web.login_routes import LOGIN_PATH, LOGOUT_PATH
from sprocket.console.web.sessions import ConsoleSession
from sprocket.console.web.style import STYLE
from sprocket.console.web.visits import ConsolePage, PageVisit

_THEME_COOKIE = "sprocket-theme"
#: What a page may take until its frame is there, s.
_FRAME_SECONDS = 20.0


def add_pages(pages: Sequence[ConsolePage], desk: ConsoleDesk) -> None:
    """Adds pages to NiceGUI's application, of which a process has one."""
    for page in pages:
        _add_page(page, pages, desk)


def _add_page(page: ConsolePage, pages: Sequence[ConsolePage], desk: ConsoleDesk) -> None:
    async def shown(request: Request) -> Response | None:
        session = await desk.session_of(request)
        if session is None:
            there = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{LOGIN_PATH}?{urlencode({'next': there})}", status_code=303)
        _frame(page, pages, desk, session, request)
        with ui.element("main").classes("page"):
            with ui.row().classes("page-head"):
                ui.label(page.title).classes("page-title").props("role=heading aria-level=1")
            visit = PageVisit(desk, session, page, request.query_params)
        await ui.context.client.connected(timeout=_FRAME_SECONDS)
        await visit.show()
        return None

    ui.page(page.path, title=f"{page.title} · Sprocket", response_timeout=_FRAME_SECONDS)(shown)


def _frame(
    page: ConsolePage, pages: Sequence[ConsolePage], desk: ConsoleDesk, session: ConsoleSession,
    request: Request,
) -> None:  # fmt: skip
    ui.add_css(STYLE)
    ui.colors(primary="#1f6aa5", secondary="#5b6570", accent="#d97b29", negative="#b3261e")
    theme = {"dark": True, "light": False}.get(request.cookies.get(_THEME_COOKIE, ""))
    dark = ui.dark_mode(theme)
    ui.query("html").props("lang=en")
    drawer = ui.left_drawer(bordered=True).props("width=210 breakpoint=900").classes("navigation")
    with ui.header(bordered=True).classes("top"):
        ui.button(icon="menu", on_click=drawer.toggle).props(
            'flat dense color=inherit aria-label="Navigation"'
        )
        ui.link("Sprocket", "/").classes("brand")
        ui.label(" ".join(desk.settings.nameservers)).classes("cluster gt-xs")
        ui.space()
        if desk.settings.is_read_only:
            ui.badge("read-only").props("color=accent outline")
        _theme_menu(dark)
        _user(session)
    with drawer, ui.element("nav").props('aria-label="Pages"'):
        for each in pages:
            if each.icon is not None:
                _entry(each, is_here=each.path == page.path)
        ui.label(f"Sprocket {__version__}").classes("version")


def _entry(page: ConsolePage, *, is_here: bool) -> None:
    with ui.element("a").props(f'href="{page.path}"').classes("entry" + " here" * is_here) as link:
        if is_here:
            link.props("aria-current=page")
        ui.icon(page.icon or "").props("aria-hidden=true")
        ui.label(page.title)


def _theme_menu(dark: ui.dark_mode) -> None:
    def choose(name: str, value: bool | None) -> None:
        dark.set_value(value)
        ui.run_javascript(
            f"document.cookie = '{_THEME_COOKIE}={name}; path=/; max-age=31536000; samesite=strict'"
        )

    with (
        ui.button(icon="contrast").props('flat dense color=inherit aria-label="Light or dark"'),
        ui.menu(),
    ):
        ui.menu_item("As the system", lambda: choose("auto", None))
        ui.menu_item("Light", lambda: choose("light", False))
        ui.menu_item("Dark", lambda: choose("dark", True))


def _user(session: ConsoleSession) -> None:
    if session.user is None:
        return
    with ui.element("form").props(f'method=post action="{LOGOUT_PATH}"').classes("user"):
        ui.label(session.user).classes("user-name gt-xs")
        ui.button("Log out").props("flat dense no-caps type=submit color=inherit")
