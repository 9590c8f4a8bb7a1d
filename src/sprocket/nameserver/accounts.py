"""The users of a name server: who may ask it what.

A name server has users of its own, in a file that has the form of a broker's `accounts.json` and
may be a copy of it. The same requests change them (3001 to 3010), each saved before it is answered.
RocketMQ's name server checks nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping

import msgspec

from sprocket.auth.accounts import AccountTable
from sprocket.auth.first_users import first_users_in, make_first_users
from sprocket.auth.guard import Guard, GuardRules
from sprocket.auth.nameserver_needs import NAMESERVER_RULES
from sprocket.auth.requests import CHANGES, AccountRequests
from sprocket.base.errors import CorruptRecord, SystemFailure
from sprocket.base.ports import Disk
from sprocket.nameserver.config import NameServerConfig
from sprocket.protocol.command import Command, Reply
from sprocket.remoting import address as addresses
from sprocket.remoting.transport import Peer


class NameServerAccounts:
    """The users, their file and the check of each request. `load` it before it is used."""

    def __init__(self, config: NameServerConfig, disk: Disk) -> None:
        self._config = config
        self._disk = disk
        self._table = AccountTable()
        none: frozenset[int] = frozenset()
        rules = GuardRules(config.authentication, config.authorization, none, none, config.cluster)
        self._guard = Guard(self._table, lambda: rules, NAMESERVER_RULES)
        self._requests = AccountRequests(self._table, lambda: config.authentication)

    def load(self) -> None:
        """Loads the users, and makes those of the settings.

        Raises:
            CorruptRecord: the file is none of users.
            ConfigError: a user of the settings is not valid, or nobody could enter.
            OSError: the file cannot be read, or not written.
        """
        path = self._config.accounts_path
        content = None if path is None else self._disk.read(path)
        if content is not None:
            try:
                self._table.load(msgspec.json.decode(content, type=dict))
            except (msgspec.MsgspecError, ValueError) as error:
                raise CorruptRecord(f"{path} is no file of users: {error}") from error
        firsts = first_users_in(self._config.first_user, self._config.inner_keys)
        make_first_users(self._table, firsts, is_on=self._config.authentication)
        self._save()

    @property
    def check(self) -> Callable[[Command, Peer], str] | None:
        """Returns who signed a request, or raises NoPermission; None if nothing is checked."""
        return self._check if self._config.authentication else None

    def _check(self, command: Command, peer: Peer) -> str:
        return self._guard.check(command, addresses.bare(peer.address.rpartition(":")[0]))

    def table(self) -> Mapping[int, Callable[[Command, Peer], Reply]]:
        """What answers the requests about users, by code."""

        def endpoint(code: int, answer: Callable[[Command], Reply]) -> Callable[..., Reply]:
            return self._kept(answer) if code in CHANGES else lambda command, peer: answer(command)

        return {code: endpoint(code, each) for code, each in self._requests.table().items()}

    def _kept(self, answer: Callable[[Command], Reply]) -> Callable[[Command, Peer], Reply]:
        def kept(command: Command, peer: Peer) -> Reply:
            before = self._table.draft()
            reply = answer(command)
            try:
                self._save()
            except OSError as error:
                self._table.replace_by(before)
                raise SystemFailure(f"cannot keep it: {error}") from error
            return reply

        return kept

    def _save(self) -> None:
        path = self._config.accounts_path
        if path is not None:
            self._disk.make_directory(os.path.dirname(path) or ".")
            text = json.dumps(self._table.to_json(), ensure_ascii=False, indent=1)
            self._disk.replace_secret(path, text.encode())
