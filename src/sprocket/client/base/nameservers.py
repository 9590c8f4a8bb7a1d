"""The name servers of a client, as users give them or the environment names them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sprocket.base import setting_forms as forms
from sprocket.base.errors import ConfigError

#: Environment variables with the name servers, if none are given; the first that is set is used.
NAMESERVER_VARIABLES = ("SPROCKET_NAMESERVERS", "NAMESRV_ADDR")


def nameserver_addresses(
    given: str | Iterable[str] | None, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Returns the name servers as a sorted tuple of `host:port`.

    Args:
        given: one `host:port`, or several, separated by `;` or `,` or as a list. None: those of the
            environment.
        environment: the variables; see `NAMESERVER_VARIABLES`.

    Raises:
        ConfigError: there is no name server, or an address is not `host:port`.
    """
    found = given
    if found is None:
        found = next((environment[v] for v in NAMESERVER_VARIABLES if environment.get(v)), "")
    pieces = [found] if isinstance(found, str) else found
    pieces = list(pieces) if isinstance(pieces, Iterable) else [pieces]
    if not all(isinstance(each, str) for each in pieces):
        raise ConfigError(
            f"name servers are host:port in a string, or a list of such strings, not {found!r}"
        )
    texts = {text.strip() for piece in pieces for text in piece.replace(";", ",").split(",")}
    addresses = tuple(sorted(texts - {""}))
    if not addresses:
        raise ConfigError(
            f"no name server is given, and none is set in {' or '.join(NAMESERVER_VARIABLES)}"
        )
    for address in addresses:
        if complaint := forms.address(address):
            raise ConfigError(f"a name server {complaint}")
    return addresses
