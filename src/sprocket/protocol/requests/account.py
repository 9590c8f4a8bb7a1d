"""Requests about users and what they may do. Source: the ten `…User…` and `…Acl…` headers of
RocketMQ 5.3."""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header


class CreateUser(Header, kw_only=True):
    """Makes a user; request body: `UserBody`."""

    code: ClassVar[int] = 3001

    username: str


class UpdateUser(Header, kw_only=True):
    """Changes what the request body, `UserBody`, names."""

    code: ClassVar[int] = 3002

    username: str


class DeleteUser(Header, kw_only=True):
    """Removes a user and its policies; no error if there is none."""

    code: ClassVar[int] = 3003

    username: str


class UserOf(Header, kw_only=True):
    """Asks for a user; reply body: `UserBody`, or nothing."""

    code: ClassVar[int] = 3004

    username: str


class Users(Header, kw_only=True):
    """Asks for the users whose names contain a text; reply body: a list of `UserBody`."""

    code: ClassVar[int] = 3005

    filter: str | None = None


class CreateAcl(Header, kw_only=True):
    """Adds entries to a user's policies; request body: `AclBody`. `subject`: `User:` and a name."""

    code: ClassVar[int] = 3006

    subject: str


class UpdateAcl(Header, kw_only=True):
    """As `CreateAcl`."""

    code: ClassVar[int] = 3007

    subject: str


class DeleteAcl(Header, kw_only=True):
    """Removes the entry for a resource from a user's policies of a kind, or all its policies."""

    code: ClassVar[int] = 3008

    subject: str
    policy_type: str | None = None
    resource: str | None = None


class AclOf(Header, kw_only=True):
    """Asks for a user's policies; reply body: `AclBody`, or nothing."""

    code: ClassVar[int] = 3009

    subject: str


class Acls(Header, kw_only=True):
    """Asks for the policies of subjects whose names contain a text, with the entries for resources
    that contain another one; reply body: a list of `AclBody`."""

    code: ClassVar[int] = 3010

    subject_filter: str | None = None
    resource_filter: str | None = None
