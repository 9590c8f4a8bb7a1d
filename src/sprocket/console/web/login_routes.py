"""The routes by which users log in and out."""

from __future__ import annotations

import logging
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from sprocket.base.errors import ConfigError, NoPermission, SprocketError
from sprocket.console.web.entrance import ConsoleEntrance
from sprocket.console.web.login_page import login_page, path_within
from sprocket.console.web.sessions import Sessions
from sprocket.protocol.signing import Signer

logger = logging.getLogger(__name__)

COOKIE = "sprocket-console"
LOGIN_PATH, LOGOUT_PATH = "/login", "/logout"
_FORM_BYTES_MAX = 8_192


class LoginRoutes:
    """Serves the log-in."""

    def __init__(self, sessions: Sessions, entrance: ConsoleEntrance, *, is_secure: bool) -> None:
        self._sessions = sessions
        self._entrance = entrance
        self._is_secure = is_secure

    @property
    def routes(self) -> list[Route]:
        """The routes for an application."""
        return [
            Route(LOGIN_PATH, self._show, methods=["GET"]),
            Route(LOGIN_PATH, self._log_in, methods=["POST"]),
            Route(LOGOUT_PATH, self._log_out, methods=["POST"]),
        ]

    async def _show(self, request: Request) -> Response:
        return HTMLResponse(login_page(next_path=path_within(request.query_params.get("next"))))

    async def _log_in(self, request: Request) -> Response:
        form = await _form(request)
        user, next_path = form.get("user", ""), path_within(form.get("next"))
        address = request.client.host if request.client else ""
        names = (f"user {user[:255]}", f"address {address}")
        try:
            self._sessions.check_attempts(*names)
            signer = Signer.of(user, form.get("key"))
            if signer is None:
                raise ConfigError("give an access key and its secret key")
            await self._entrance.check(signer)
        except NoPermission:
            self._sessions.count_failure(*names)
            logger.warning("a log-in as %r from %s failed", user[:255], address)
            fault = "There is no user with this access key and secret key, or it is disabled."
            return _again(next_path, user, fault, 401)
        except SprocketError as error:
            return _again(next_path, user, str(error), 400)
        self._sessions.end(request.cookies.get(COOKIE))
        token = self._sessions.begin(signer)
        logger.info("%r logged in from %s", user, address)
        response = RedirectResponse(next_path, status_code=303)
        response.set_cookie(
            COOKIE, token, httponly=True, samesite="strict", secure=self._is_secure, path="/"
        )
        return response

    async def _log_out(self, request: Request) -> Response:
        self._sessions.end(request.cookies.get(COOKIE))
        response = RedirectResponse(LOGIN_PATH, status_code=303)
        response.delete_cookie(COOKIE, path="/")
        return response


def _again(next_path: str, user: str, fault: str, status: int) -> Response:
    page = login_page(next_path=next_path, user=user[:255], fault=fault)
    return HTMLResponse(page, status_code=status)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, the first of each name; none if it is too large."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _FORM_BYTES_MAX:
            return {}
    fields = parse_qs(body.decode("latin-1"), max_num_fields=10, errors="replace")
    return {name: values[0] for name, values in fields.items()}
