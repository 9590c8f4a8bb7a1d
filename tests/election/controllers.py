"""Controllers that follow RocketMQ's rules, in virtual time: one of them leads, all share a state.

The rules are those of ReplicasInfoManager, DefaultElectPolicy and DefaultBrokerHeartbeatManager of
RocketMQ 5.3.3; `tests/compat/test_java_controller.py` plays the same against the real one.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Self

from sprocket.protocol.bodies import (
    ElectedBody,
    InSyncSetBody,
    ReplicaFacts,
    ReplicaIdentity,
    ReplicaTable,
)
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests import election as requests
from sprocket.protocol.requests.route import BrokerHeartbeat
from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.server import Server
from sprocket.remoting.transport import Peer

R = ResponseCode


class Refusal(Exception):
    """Is answered with a code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Life:
    """What a heartbeat told."""

    at: float
    timeout: float
    peer: Peer
    epoch: int
    end: int
    priority: int


@dataclass
class Group:
    """The state of one group."""

    addresses: dict[int, str] = field(default_factory=dict)
    codes: dict[int, str] = field(default_factory=dict)
    next_id: int = 1
    master: int | None = None
    epoch: int = 0
    in_sync: set[int] = field(default_factory=set)
    set_epoch: int = 0


class Controllers:
    """Some controllers on ports of the loopback address.

    Attributes:
        leader: the index of the one that leads; None while they elect.
        names: what the others say who leads, if it is something else.
        asked: code and index of the controller of every request.
        silent: codes that are carried out and not answered.
        failing: codes that are answered with an error before they are carried out.
    """

    def __init__(self, *ports: int) -> None:
        self.addresses = [f"127.0.0.1:{port}" for port in ports]
        self.ports = ports
        self.leader: int | None = 0
        self.names: str | None = None
        self.groups: dict[str, Group] = {}
        self.lives: dict[tuple[str, int], Life] = {}
        self.asked: list[tuple[int, int]] = []
        self.silent: set[int] = set()
        self.failing: dict[int, int] = {}
        self._servers: dict[int, AsyncExitStack] = {}

    async def __aenter__(self) -> Self:
        for index in range(len(self.ports)):
            await self.start(index)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for index in list(self._servers):
            await self.stop(index)

    async def start(self, index: int) -> None:
        stack = self._servers[index] = AsyncExitStack()
        answer = one_by_one(partial(self._answer, index))
        await stack.enter_async_context(Server(answer, host="127.0.0.1", port=self.ports[index]))

    async def stop(self, index: int) -> None:
        await self._servers.pop(index).aclose()

    def is_alive(self, name: str, number: int) -> bool:
        life = self.lives.get((name, number))
        now = asyncio.get_running_loop().time()
        return life is not None and not life.peer.is_closed and now <= life.at + life.timeout

    def elect(self, name: str, chosen: int | None = None) -> bool:
        """An election; False if nobody may lead or the master stays."""
        group = self.groups[name]
        living = {each for each in group.in_sync if self.is_alive(name, each)}
        new: int | None = None
        if group.master in living and chosen in (None, group.master):
            return False
        if chosen is not None:
            new = chosen if chosen in living else None
        elif living:

            def rank(number: int) -> tuple[int, int, int]:
                life = self.lives[name, number]
                return -life.epoch, -life.end, life.priority

            new = min(living, key=rank)
        if new is None:
            return False
        self._lead(group, new)
        return True

    def scan(self) -> None:
        """Elects where a master is dead."""
        for name, group in self.groups.items():
            is_lost = group.master is not None and not self.is_alive(name, group.master)
            if is_lost and not self.elect(name):
                group.master, group.epoch = None, group.epoch + 1

    @staticmethod
    def _lead(group: Group, number: int) -> None:
        group.master, group.in_sync = number, {number}
        group.epoch += 1
        group.set_epoch += 1

    def _answer(self, index: int, command: Command, peer: Peer) -> Reply | None:
        self.asked.append((command.code, index))
        if code := self.failing.get(command.code):
            return Reply(code=code, remark="as planted")
        try:
            reply = self._do(index, command, peer)
        except Refusal as error:
            reply = Reply(code=error.code, remark="no")
        return None if command.code in self.silent else reply

    def _do(self, index: int, command: Command, peer: Peer) -> Reply:
        if command.code == RequestCode.CONTROLLER_GET_METADATA_INFO:
            leader = None if self.leader is None else self.addresses[self.leader]
            return Reply(
                header=requests.ControllerMetadataReply(
                    controller_leader_address=self.names or leader or "",
                    is_leader=index == self.leader,
                )
            )
        if command.code == RequestCode.BROKER_HEARTBEAT:
            return self._beat(command, peer)
        if index != self.leader:
            raise Refusal(R.CONTROLLER_NOT_LEADER)
        do = {
            RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: self._next,
            RequestCode.CONTROLLER_APPLY_BROKER_ID: self._apply,
            RequestCode.CONTROLLER_REGISTER_BROKER: self._register,
            RequestCode.CONTROLLER_GET_SYNC_STATE_DATA: self._data,
            RequestCode.CONTROLLER_ELECT_MASTER: self._elect,
            RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: self._alter,
        }[RequestCode(command.code)]
        return do(command)

    def _beat(self, command: Command, peer: Peer) -> Reply:
        beat = command.read(BrokerHeartbeat)
        key = beat.broker_name, beat.broker_id or 0
        before = self.lives.get(key)
        if before is not None and not before.peer.is_closed:
            peer = before.peer
        self.lives[key] = Life(
            asyncio.get_running_loop().time(),
            (beat.heartbeat_timeout_mills or 0) / 1000,
            peer,
            beat.epoch or 0,
            beat.max_offset or 0,
            beat.election_priority or 0,
        )
        return Reply(remark="Heart beat success")

    def _next(self, command: Command) -> Reply:
        group = self.groups.get(command.read(requests.NextMember).broker_name, Group())
        return Reply(header=requests.NextMemberReply(next_broker_id=group.next_id))

    def _apply(self, command: Command) -> Reply:
        asked = command.read(requests.ApplyForMember)
        group = self.groups.setdefault(asked.broker_name, Group())
        number, code = asked.applied_broker_id, asked.register_check_code
        if group.codes.get(number, code) != code:
            raise Refusal(R.CONTROLLER_BROKER_ID_INVALID)
        if number not in group.codes:
            group.codes[number], group.addresses[number] = code, code.split(";")[0]
            group.next_id += 1
        return Reply()

    def _register(self, command: Command) -> Reply:
        asked = command.read(requests.RegisterMember)
        group = self.groups.get(asked.broker_name)
        if group is None or asked.broker_id not in group.addresses:
            raise Refusal(R.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED)
        group.addresses[asked.broker_id] = asked.broker_address
        return Reply(body=self._set(group))

    def _data(self, command: Command) -> Reply:
        table = {}
        for name in json.loads(bytes(command.body)):
            group = self.groups.get(name)
            if group is None:
                continue
            replicas = {
                number: ReplicaIdentity(self.is_alive(name, number), address, number, name)
                for number, address in group.addresses.items()
            }
            table[name] = ReplicaFacts(
                [each for number, each in replicas.items() if number in group.in_sync],
                group.addresses.get(group.master or 0),
                group.master,
                group.epoch,
                [each for number, each in replicas.items() if number not in group.in_sync],
                group.set_epoch,
            )
        return Reply(body=ReplicaTable(table).encode())

    def _elect(self, command: Command) -> Reply:
        asked = command.read(requests.ElectMaster)
        group = self.groups.get(asked.broker_name)
        if group is None:
            raise Refusal(R.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED)
        code = 0
        if group.epoch == 0:
            self._lead(group, asked.broker_id)
        elif not self.elect(asked.broker_name, asked.broker_id if asked.designate_elect else None):
            if group.master is None or (asked.designate_elect and asked.broker_id != group.master):
                raise Refusal(R.CONTROLLER_ELECT_MASTER_FAILED)
            code = R.CONTROLLER_MASTER_STILL_EXIST
        header = requests.ElectMasterReply(
            master_broker_id=group.master,
            master_address=group.addresses.get(group.master or 0),
            master_epoch=group.epoch,
            sync_state_set_epoch=group.set_epoch,
        )
        body = ElectedBody(sync_state_set=sorted(group.in_sync)).encode()
        return Reply(header=header, body=body, code=code)

    def _alter(self, command: Command) -> Reply:
        asked = command.read(requests.AlterInSyncSet)
        body = InSyncSetBody.decode(command.body)
        group, new = self.groups[asked.broker_name], set(body.sync_state_set)
        if new == group.in_sync or asked.master_broker_id not in new:
            raise Refusal(R.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED)
        if asked.master_broker_id != group.master:
            raise Refusal(R.CONTROLLER_INVALID_MASTER)
        if asked.master_epoch != group.epoch:
            raise Refusal(R.CONTROLLER_FENCED_MASTER_EPOCH)
        if body.sync_state_set_epoch != group.set_epoch:
            raise Refusal(R.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH)
        if not all(self.is_alive(asked.broker_name, each) for each in new):
            raise Refusal(R.CONTROLLER_BROKER_NOT_ALIVE)
        group.in_sync, group.set_epoch = new, group.set_epoch + 1
        return Reply(body=self._set(group))

    @staticmethod
    def _set(group: Group) -> bytes:
        return InSyncSetBody(
            sync_state_set=sorted(group.in_sync), sync_state_set_epoch=group.set_epoch
        ).encode()
