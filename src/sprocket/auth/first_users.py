"""The users of the settings: those who are made at the start, and the keys of a server's own
requests. Pure. Source of the JSON: AuthConfig, User and SessionCredentials of RocketMQ 5.3."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import msgspec

from sprocket.auth.accounts import AccountTable, User, UserKind
from sprocket.base.errors import ConfigError, UsageError
from sprocket.protocol.signing import Signer

logger = logging.getLogger(__name__)

JSON_USER = '{"username":"admin","password":"…"}'
JSON_KEYS = '{"accessKey":"…","secretKey":"…"}'


class FirstUser(msgspec.Struct):
    """A super user of the settings."""

    username: str
    password: str

    def __repr__(self) -> str:
        return f"FirstUser({self.username!r})"


class _Keys(msgspec.Struct, rename="camel"):
    access_key: str
    secret_key: str

    def __repr__(self) -> str:
        return f"_Keys({self.access_key!r})"


def user_form(value: str) -> str | None:
    """What is wrong with the text of a setting; None if it names a user."""
    try:
        msgspec.json.decode(value, type=FirstUser)
    except msgspec.MsgspecError:
        return f"is JSON such as {JSON_USER}"
    return None


def keys_form(value: str) -> str | None:
    """What is wrong with the text of a setting; None if it names keys."""
    try:
        msgspec.json.decode(value, type=_Keys)
    except msgspec.MsgspecError:
        return f"is JSON such as {JSON_KEYS}"
    return None


def first_users_in(user: str | None, keys: str | None) -> Iterator[FirstUser]:
    """The users that two settings name: a user, and keys whose owner is one too."""
    if user:
        yield msgspec.json.decode(user, type=FirstUser)
    if keys:
        found = msgspec.json.decode(keys, type=_Keys)
        yield FirstUser(found.access_key, found.secret_key)


def signer_in(keys: str | None) -> Signer | None:
    """What signs with the keys of a setting; None if it names none."""
    if not keys:
        return None
    found = msgspec.json.decode(keys, type=_Keys)
    return Signer(found.access_key, found.secret_key)


def make_first_users(accounts: AccountTable, users: Iterable[FirstUser], *, is_on: bool) -> None:
    """Makes the super users that do not exist. One who exists stays as it is.

    Args:
        is_on: whether requests are authenticated: then there must be a super user.

    Raises:
        ConfigError: one is not valid, or nobody could enter.
    """
    for first in users:
        found = accounts.users.get(first.username)
        if found is None:
            try:
                accounts.create(User.first(first.username, first.password))
            except UsageError as error:
                raise ConfigError(f"a first user of the settings: {error}") from error
        elif found != User(found.name, first.password, UserKind.SUPER):
            logger.warning("the user %s is not as the settings say: it stays as it is", found.name)
    if is_on and not any(map(accounts.is_super, accounts.users)):
        raise ConfigError(
            "authentication (authenticationEnabled) is on, and no super user is enabled: "
            "first_user (initAuthenticationUser) or inner_keys "
            "(innerClientAuthenticationCredentials) makes one"
        )
