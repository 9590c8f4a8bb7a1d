"""Requests about the accounts of RocketMQ 4.x (50 to 53) at a broker that reads `plain_acl.yml`.

A change is in its file before it is answered. Each broker has its files, slaves too: mqadmin sends
a change to all of them. Source: AdminBrokerProcessor of RocketMQ 4.9.8. It lets every account make
these requests; here they need `admin`.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from sprocket.auth.plain_changes import AccountChange, with_account, with_white, without_account
from sprocket.auth.plain_files import PlainFile, PlainVersion
from sprocket.base.errors import ReplyError, UsageError
from sprocket.base.ports import Clock
from sprocket.base.suggestions import shown
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.plain_accounts import PlainAccountFiles
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.plain_account import (
    DeletePlainAccount,
    PlainVersionsReply,
    UpdatePlainAccount,
    UpdatePlainAddresses,
)
from sprocket.remoting.endpoints import Endpoint
from sprocket.remoting.transport import Peer


class PlainAccountRequests:
    """Answers them.

    Args:
        accounts: the files; None at a broker that has users, or lets everybody in.
        address: of the broker.
    """

    def __init__(
        self,
        accounts: PlainAccountFiles | None,
        settings: BrokerSettings,
        clock: Clock,
        address: str,
    ) -> None:
        self._accounts = accounts
        self._settings = settings
        self._clock = clock
        self._address = address

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        code = ResponseCode
        return {
            RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: _failing_with(
                code.UPDATE_AND_CREATE_ACL_CONFIG_FAILED, self.update
            ),
            RequestCode.DELETE_ACL_CONFIG: _failing_with(
                code.DELETE_ACL_CONFIG_FAILED, self.delete
            ),
            RequestCode.GET_BROKER_CLUSTER_ACL_INFO: lambda command, peer: self.versions(),
            RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: _failing_with(
                code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED, self.change_white
            ),
        }

    def update(self, command: Command) -> Reply:
        """Makes an account in `plain_acl.yml`, or changes it where it is."""
        header = command.read(UpdatePlainAccount)
        change = AccountChange(
            header.access_key,
            header.secret_key,
            header.admin,
            header.white_remote_address,
            header.default_topic_perm,
            header.default_group_perm,
            _listed(header.topic_perms),
            _listed(header.group_perms),
        )
        accounts = self._known()
        path = _path_of(accounts, header.access_key) or accounts.main
        self._save(path, with_account(_file(accounts, path), change, self._clock.now_ms()))
        return Reply()

    def delete(self, command: Command) -> Reply:
        """Removes an account from its file."""
        name = command.read(DeletePlainAccount).access_key
        accounts = self._known()
        path = _path_of(accounts, name)
        if path is None:
            raise UsageError(f"there is no account {shown(name)}")
        self._save(path, without_account(_file(accounts, path), name, self._clock.now_ms()))
        return Reply()

    def change_white(self, command: Command) -> Reply:
        """Replaces the addresses of a file from which everything passes."""
        header = command.read(UpdatePlainAddresses)
        accounts = self._known()
        path = header.acl_file_full_path or accounts.main
        if path != accounts.main and path not in accounts.files:
            raise UsageError(f"{shown(path)} is none of this broker's files of accounts")
        white = [each.strip() for each in header.global_white_addrs.split(",") if each.strip()]
        self._save(path, with_white(_file(accounts, path), white, self._clock.now_ms()))
        return Reply()

    def versions(self) -> Reply:
        """How often requests have changed each file."""
        accounts, config = self._known(), self._settings.config
        versions = {path: each.version._asdict() for path, each in accounts.files.items()}
        main = versions.get(accounts.main) or PlainVersion()._asdict()
        return Reply(
            header=PlainVersionsReply(
                version=msgspec.json.encode(main).decode(),
                all_acl_file_version=msgspec.json.encode(versions).decode(),
                broker_name=config.name,
                broker_addr=self._address,
                cluster_name=config.cluster,
            )
        )

    def _save(self, path: str, data: bytes) -> None:
        self._known().save(path, data)

    def _known(self) -> PlainAccountFiles:
        """
        Raises:
            UsageError: this broker reads no such file.
        """
        if self._accounts is None:
            raise UsageError(
                "this broker reads no plain_acl.yml: aclEnable is off (broker.plain_acl)"
            )
        return self._accounts


def _failing_with(code: int, answer: Callable[[Command], Reply]) -> Endpoint:
    """The endpoint; what is wrong with a request has the code that RocketMQ has for it."""

    def endpoint(command: Command, peer: Peer) -> Reply:
        try:
            return answer(command)
        except UsageError as error:
            raise ReplyError(str(error), code) from error

    return endpoint


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [each.strip() for each in text.split(",") if each.strip()]


def _path_of(accounts: PlainAccountFiles, name: str) -> str | None:
    """The path of the file in which an account counts."""
    for path, file in accounts.files.items():
        if any(each.name.text == name for each in file.accounts):
            return path
    return None


def _file(accounts: PlainAccountFiles, path: str) -> PlainFile:
    return accounts.files.get(path) or PlainFile(path, (), ())
