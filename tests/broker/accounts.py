"""A closed broker: one that authenticates and authorizes, and users who sign."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from sprocket.auth.policies import PolicyEntry
from sprocket.protocol.bodies import AclBody, PolicyBody, PolicyEntryBody, UserBody
from sprocket.protocol.requests.account import CreateAcl, CreateUser
from sprocket.protocol.signing import Signer
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.loop import simulate
from tests.broker.parts import SUCCESS, Asker, another, serving

T = TypeVar("T")

ROOT_USER = Signer("root", "root's")
CLOSED: dict[str, Any] = {
    "authentication": True,
    "authorization": True,
    "first_user": '{"username":"root","password":"root\'s"}',
}
#: The same with keys for the broker's own requests, which a slave needs.
INNER: dict[str, Any] = {
    **CLOSED,
    "inner_keys": '{"accessKey":"inner","secretKey":"inner\'s"}',
}
REFUSED = 16


def play_closed(
    test: Callable[[Asker, Asker], Awaitable[T]],
    disk: MemoryDisk | None = None,
    **settings: object,
) -> T:
    """Runs a test against a closed broker, with an asker who signs nothing and the super user."""

    async def main() -> T:
        async with (
            serving(disk, **{**CLOSED, **settings}) as nobody,
            another(nobody, ROOT_USER) as root,
        ):
            return await test(nobody, root)

    return simulate(lambda network: main())


async def make_user(root: Asker, name: str, *, kind: str = "Normal") -> Signer:
    """Makes a user; returns what signs for it."""
    body = UserBody(password=f"{name}'s", user_type=kind).encode()
    reply = await root.call(CreateUser(username=name), body)
    assert reply.code == SUCCESS, reply.remark
    return Signer(name, f"{name}'s")


async def allow(root: Asker, name: str, *entries: tuple[str, str]) -> None:
    """Allows a user some actions, each on a resource."""
    body = AclBody(
        policies=[
            PolicyBody(
                entries=[
                    PolicyEntryBody(resource=resource, actions=actions.split(","), decision="Allow")
                    for resource, actions in entries
                ]
            )
        ]
    )
    reply = await root.call(CreateAcl(subject=f"User:{name}"), body.encode())
    assert reply.code == SUCCESS, reply.remark


def entry(resource: str, actions: str) -> PolicyEntry:
    """An entry that allows."""
    return PolicyEntry.of(resource, actions.split(","), "Allow")
