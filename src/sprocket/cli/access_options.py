"""The options of access, which every command that asks servers has besides its own: profile, TLS.

They win over the settings of `[client]`; whatever else can be set of TLS is there.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import loading

if TYPE_CHECKING:
    from sprocket.remoting.profiles import Profile

F = TypeVar("F", bound=Callable[..., Any])

_PANEL = "TLS"
_PROFILE = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        envvar="SPROCKET_PROFILE",
        help="Name servers, keys and TLS of \\[profile.NAME] in the file of SPROCKET_CONFIG.",
        rich_help_panel="Profile",
    ),
]
_TLS: dict[str, Any] = {
    "tls": Annotated[
        bool | None,
        typer.Option("--tls/--no-tls", help="Connect with TLS.", rich_help_panel=_PANEL),
    ],
    "tls_authorities": Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Authorities (PEM) of the servers' certificates; turns TLS on.",
            rich_help_panel=_PANEL,
        ),
    ],
    "tls_certificate": Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Certificate (PEM) of our own; turns TLS on.",
            rich_help_panel=_PANEL,
        ),
    ],
    "tls_key": Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Its key (PEM).", rich_help_panel=_PANEL),
    ],
    "tls_check": Annotated[
        bool | None,
        typer.Option(
            "--tls-check/--no-tls-check",
            help="Check the servers' certificates (default).",
            rich_help_panel=_PANEL,
        ),
    ],
}


_CONTEXT = "access_context"
_OPTIONS = {"profile": _PROFILE, **_TLS}


def with_access(command: F, *, asks_by: str = "nameserver") -> F:
    """The command with the options of access, if it has one for the name servers.

    Args:
        asks_by: the parameter of that option.
    """
    own = inspect.signature(command, eval_str=True)
    if asks_by not in own.parameters:
        return command

    @functools.wraps(command)
    def asked(**given: Any) -> Any:
        context: typer.Context = given.pop(_CONTEXT)
        name = given.pop("profile")
        options = {name: given.pop(name) for name in _TLS}
        source = context.get_parameter_source(asks_by)
        is_named = source is not None and source.name == "COMMANDLINE"
        profile = None if name is None else _profile(name, given, None if is_named else asks_by)
        loading.take_client_options(_settings(options), profile)
        try:
            return command(**given)
        finally:
            loading.take_client_options({})

    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _OPTIONS.items()
    ]
    added.append(
        inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    )
    listed = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own.parameters.values()]
    asked.__signature__ = own.replace(parameters=[*listed, *added])  # type: ignore[attr-defined]
    asked.__annotations__ = {
        **{name: each.annotation for name, each in own.parameters.items()}, **_OPTIONS,
        _CONTEXT: typer.Context,
    }  # fmt: skip
    return asked  # type: ignore[return-value]


def _profile(name: str, given: dict[str, Any], asks_by: str | None) -> Profile:
    """The profile of this name.

    Args:
        asks_by: the parameter that gets its name servers; None if an option names others.
    """
    from sprocket.remoting.profiles import Profile

    profile = Profile.named(name)
    servers = profile.read().nameservers
    if asks_by is not None:
        if not servers:  # those of the environment may be another cluster's, and get no keys of it
            raise UsageError(f"[profile.{name}] names no servers: add nameservers, or --nameserver")
        given[asks_by] = ";".join(servers)
    return profile


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """The settings of `[client]` that the options set."""
    found = {name: str(each) if isinstance(each, Path) else each for name, each in options.items()}
    if found["tls"] is None and (found["tls_authorities"] or found["tls_certificate"]):
        found["tls"] = True
    return {f"client.{name}": each for name, each in found.items() if each is not None}
