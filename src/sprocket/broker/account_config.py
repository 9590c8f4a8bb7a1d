"""The settings of users and permissions: part of a broker's, with RocketMQ's names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sprocket.auth.first_users import (
    JSON_KEYS,
    JSON_USER,
    FirstUser,
    first_users_in,
    keys_form,
    signer_in,
    user_form,
)
from sprocket.base.config import Conflict, setting
from sprocket.broker.replica_config import ReplicaConfig
from sprocket.message.topic import fault_of_topic, group_of, is_system_topic
from sprocket.protocol.signing import Signer


def _codes_form(value: tuple[str, ...]) -> str | None:
    wrong = [each for each in value if not (each.isascii() and each.isdigit())]
    return f"is a list of request codes, not {wrong[0]!r}" if wrong else None


def _topic_form(value: str) -> str | None:
    if fault := fault_of_topic(value):
        return f"is the name of a topic: {fault}"
    is_taken = is_system_topic(value) or group_of(value) is not None
    return (
        "is the name of a topic of its own, not of a system topic or a group's" * is_taken or None
    )


@dataclass(frozen=True, slots=True)
class AccountConfig(ReplicaConfig):
    """Settings of users and permissions."""

    authentication: bool = setting(
        False,
        "Whether each request must be signed with the keys of a user.",
        rocketmq="authenticationEnabled",
    )
    authorization: bool = setting(
        False,
        "Whether the user must have the rights that its request needs.",
        rocketmq="authorizationEnabled",
    )
    first_user: str | None = setting(
        None,
        f"A super user that is made at the start if there is none of its name: {JSON_USER}.",
        rocketmq="initAuthenticationUser",
        form=user_form,
        is_secret=True,
    )
    inner_keys: str | None = setting(
        None,
        "Keys with which the broker signs its own requests to other brokers and to name servers: "
        f"{JSON_KEYS}. They belong to a super user, which is made at the start if there is none.",
        rocketmq="innerClientAuthenticationCredentials",
        form=keys_form,
        is_secret=True,
    )
    unsigned_codes: tuple[str, ...] = setting(
        (),
        "Codes of requests that need no signature.",
        rocketmq="authenticationWhitelist",
        form=_codes_form,
    )
    unjudged_codes: tuple[str, ...] = setting(
        (),
        "Codes of requests that need a signature, but no rights.",
        rocketmq="authorizationWhitelist",
        form=_codes_form,
    )

    plain_acl: bool = setting(
        False,
        "Whether RocketMQ 4.x's files of accounts, plain_acl.yml, say who may do what, in the "
        "place of users. They are read again when they change.",
        rocketmq="aclEnable",
    )
    plain_acl_home: str | None = setting(
        None,
        "The folder whose folder `conf` has plain_acl.yml and the folder `acl` with more such "
        "files.",
        rocketmq="rocketmqHome",
    )

    audit_topic: str | None = setting(
        None,
        "Topic to which the broker sends who changes something, each entry as a message. Clients "
        "may only read it. With or without the files of `audit.enabled`.",
        rocketmq="auditLogTopic",
        form=_topic_form,
    )

    @property
    def is_closed(self) -> bool:
        """Whether requests are checked."""
        return self.authentication or self.plain_acl

    @property
    def judges_rights(self) -> bool:
        """Whether whoever signs a request must have the rights that it needs."""
        return self.authorization or self.plain_acl

    def first_users(self) -> Iterator[FirstUser]:
        """The super users that are made at the start."""
        return first_users_in(self.first_user, self.inner_keys)

    def inner_signer(self) -> Signer | None:
        """Signs the broker's own requests; None if it has no keys."""
        return signer_in(self.inner_keys)

    def account_conflicts(self) -> Iterator[Conflict]:
        """What is wrong with these settings together."""
        if self.authorization and not self.authentication:
            yield Conflict(
                ("authorization", "authentication"),
                "(authorizationEnabled) needs broker.authentication (authenticationEnabled): the "
                "rights of a user who need not prove to be it protect nothing",
            )
        if not self.plain_acl:
            return
        if self.plain_acl_home is None:
            yield Conflict(
                ("plain_acl", "plain_acl_home"),
                "(aclEnable) needs broker.plain_acl_home (rocketmqHome): the folder whose folder "
                "conf has plain_acl.yml",
            )
        for name, java in (
            ("authentication", "authenticationEnabled"),
            ("authorization", "authorizationEnabled"),
            ("first_user", "initAuthenticationUser"),
        ):
            if getattr(self, name):
                yield Conflict(
                    ("plain_acl", name),
                    f"(aclEnable) and broker.{name} ({java}) exclude each other: accounts are "
                    "those of plain_acl.yml, or users; `sprocket acl import` makes users of them",
                )
