"""Requests about users and their policies (3001 to 3010) at a broker.

A change is saved, and its slaves have it, before it is answered. A slave asks its master to make
the change: mqadmin sends each change to all masters and slaves of a cluster, since users of
RocketMQ's brokers are not copied.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from sprocket.auth.accounts import AccountTable
from sprocket.auth.requests import CHANGES, AccountRequests, encode_rows
from sprocket.base.deadline import Deadline
from sprocket.base.errors import SlaveNotAvailable, UsageError
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.operate.listings import in_turns
from sprocket.broker.tables.rights import Rights
from sprocket.protocol.bodies.body import Body
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Header, Reply
from sprocket.protocol.requests.account import (
    CreateAcl,
    CreateUser,
    DeleteAcl,
    DeleteUser,
    UpdateAcl,
    UpdateUser,
)
from sprocket.remoting.endpoints import Endpoint
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer

#: How long a slave waits for its master, s.
_ASK_SECONDS = 5.0
_HEADERS: tuple[type[Header], ...] = (
    CreateUser, UpdateUser, DeleteUser, CreateAcl, UpdateAcl, DeleteAcl,
)  # fmt: skip


class AccountEndpoints:
    """Answers them.

    Args:
        pool: connections to the master, whose requests are signed with the broker's own keys.
        master: returns the address of a slave's master; empty if that is unknown.
    """

    def __init__(
        self, accounts: AccountTable, rights: Rights, pool: Pool, master: Callable[[], str]
    ) -> None:
        self._accounts = accounts
        self._rights = rights
        self._pool = pool
        self._master = master

    def changes(self) -> Endpoints:
        """Those that change something, by request code."""
        if self._rights.plain is not None:
            return dict.fromkeys(CHANGES, _refuse)
        return {code: each for code, each in self._all().items() if code in CHANGES}

    def questions(self) -> Endpoints:
        """The others."""
        if self._rights.plain is not None:
            return {code: _refuse for code in self._all() if code not in CHANGES}
        requests = self._requests(self._accounts)
        others = {code: each for code, each in self._all().items() if code not in CHANGES}
        return {
            **others,
            RequestCode.AUTH_LIST_USER: lambda command, peer: _listed(requests.users(command)),
            RequestCode.AUTH_LIST_ACL: lambda command, peer: _listed(requests.acls(command)),
        }

    def of_slave(self) -> Endpoints:
        """Those that change something, at a slave."""
        if self._rights.plain is not None:
            return {}
        return {kind.code: self._relay_as(kind) for kind in _HEADERS}

    def _all(self) -> Endpoints:
        def endpoint(answer: Callable[[Command], Reply]) -> Endpoint:
            return lambda command, peer: answer(command)

        table = self._requests(self._accounts).table()
        return {code: endpoint(answer) for code, answer in table.items()}

    def _requests(self, accounts: AccountTable) -> AccountRequests:
        return AccountRequests(accounts, lambda: self._rights.is_on)

    # The master sees a request of this broker, which may do everything. So whether the user may
    # make the change is found out here, on a copy of the table.
    def _relay_as(self, kind: type[Header]) -> Endpoint:
        def relay(command: Command, peer: Peer) -> Awaitable[Reply]:
            self._requests(self._accounts.draft()).table()[kind.code](command)
            return self._relayed(command.read(kind), bytes(command.body))

        return relay

    async def _relayed(self, header: Header, body: bytes) -> Reply:
        address = self._master()
        if not address:
            raise SlaveNotAvailable("a slave's users are its master's, and no master is known")
        deadline = Deadline.after(_ASK_SECONDS)
        reply = await self._pool.call(address, header, body=body, deadline=deadline)
        return Reply(code=reply.code, remark=reply.remark)


def _refuse(command: Command, peer: Peer) -> Reply:
    raise UsageError(
        "this broker has the accounts of plain_acl.yml (aclEnable, broker.plain_acl) and no users: "
        "requests 50 to 53, such as mqadmin's updateAclConfig, are about these"
    )


async def _listed(rows: Iterable[Body]) -> Reply:
    return encode_rows([row async for row in in_turns(rows)])
