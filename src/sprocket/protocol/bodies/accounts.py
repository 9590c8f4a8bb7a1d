"""Bodies of the requests about users and what they may do. Source: UserInfo, AclInfo of RocketMQ
5.3."""

from __future__ import annotations

from sprocket.protocol.bodies.body import Body, always


class UserBody(Body):
    """A user: body of `CreateUser` and `UpdateUser`, reply body of `UserOf`.

    Attributes:
        user_type: `Super`, `Normal`.
        user_status: `enable`, `disable`.
    """

    password: str | None = None
    user_status: str | None = None
    user_type: str | None = None
    username: str | None = None

    def __repr__(self) -> str:
        return f"UserBody({self.username!r}, {self.user_type!r}, {self.user_status!r})"


class PolicyEntryBody(Body):
    """One entry of a policy.

    Attributes:
        actions: as `Pub`, `Sub`, `All`.
        decision: `Allow`, `Deny`.
        resource: as `Topic:orders`, `Group:*`.
        source_ips: networks or addresses; absent for everywhere.
    """

    actions: list[str] = always([])
    decision: str | None = None
    resource: str | None = None
    source_ips: list[str] | None = None


class PolicyBody(Body):
    """The entries of one kind. `policy_type`: `Custom`, `Default`."""

    entries: list[PolicyEntryBody] = always([])
    policy_type: str | None = None


class AclBody(Body):
    """What a user may do: body of `CreateAcl` and `UpdateAcl`, reply body of `AclOf`.

    Attributes:
        subject: `User:` and the name.
    """

    policies: list[PolicyBody] = always([])
    subject: str | None = None
