"""Requests about the accounts of RocketMQ 4.x (`plain_acl.yml`). Source: the headers
CreateAccessConfig…, DeleteAccessConfig…, UpdateGlobalWhiteAddrsConfig… and GetBrokerAclConfig… of
RocketMQ 4.9.8; the request 54 of 4.9.0 to 4.9.5, which shows all keys, has gone from it."""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header


class UpdatePlainAccount(Header, kw_only=True):
    """Makes an account or changes what is named. Permissions: `NAME=PUB|SUB`, with commas."""

    code: ClassVar[int] = 50

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    group_perms: str | None = None

    def __repr__(self) -> str:
        return f"UpdatePlainAccount({self.access_key!r})"


class DeletePlainAccount(Header, kw_only=True):
    """Removes an account."""

    code: ClassVar[int] = 51

    access_key: str


class PlainVersionsReply(Header, kw_only=True):
    """The versions of the files, as JSON: of the first file, and of all by path."""

    version: str
    all_acl_file_version: str | None = None
    broker_name: str
    broker_addr: str
    cluster_name: str


class PlainVersionsOf(Header, kw_only=True):
    """Asks which versions the files have."""

    code: ClassVar[int] = 52
    reply: ClassVar[type[Header]] = PlainVersionsReply


class UpdatePlainAddresses(Header, kw_only=True):
    """Replaces the addresses from which everything passes, with commas between them.

    `acl_file_full_path`: in which file; empty for `plain_acl.yml`.
    """

    code: ClassVar[int] = 53

    global_white_addrs: str
    acl_file_full_path: str | None = None
