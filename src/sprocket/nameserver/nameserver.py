"""A name server: it handles requests, removes silent brokers, saves its key-value settings."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

from sprocket.audit.audit_log import AuditLog, audit_log
from sprocket.audit.config import AuditConfig
from sprocket.audit.trail import AuditedClients, AuditTrail
from sprocket.auth.first_users import signer_in
from sprocket.base.config import check
from sprocket.base.deadline import Deadline, loop_ms
from sprocket.base.errors import ConfigError, CorruptRecord, SprocketError, SystemBusy
from sprocket.base.kept_settings import KeptSettings
from sprocket.base.opened_in_order import OpenedInOrder
from sprocket.base.ports import Clock, Disk
from sprocket.nameserver.accounts import NameServerAccounts
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.configuration import AUDITED_BODIES, CHANGEABLE, Configuration
from sprocket.nameserver.dispatch import NameServerDispatch
from sprocket.nameserver.instances import SmallestChange
from sprocket.nameserver.routes import RouteTable
from sprocket.nameserver.settings import KeyValueSettings
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.route import RegisterBroker, SmallestNumberChanged
from sprocket.quotas.admission import Admission
from sprocket.remoting.endpoints import EventualResponse, one_by_one
from sprocket.remoting.ip_counts import IpCounts
from sprocket.remoting.limits import ConnectionLimits
from sprocket.remoting.pool import Pool
from sprocket.remoting.server import Server
from sprocket.remoting.tls.settings import TlsConfig, checked_settings
from sprocket.remoting.transport import Peer
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk

logger = logging.getLogger(__name__)

#: How long connecting to a broker may take that is notified, s.
_NOTICE_SECONDS = 0.3


def audit_trail(log: AuditLog) -> AuditTrail:
    """Records the requests of a name server."""
    clients = AuditedClients(user_of=lambda command: command.user or "")
    return AuditTrail(log, clients, bodies=AUDITED_BODIES)


class NameServer(OpenedInOrder):
    """Gives clients the routes that brokers have registered. Use it with `async with`.

    Args:
        config: its settings.
        disk: stores the key-value settings and the users, if the config names files.
        tls: whether and how it speaks TLS.
        audit: whether and where it writes an audit log.
        clock: the times of that.
    """

    def __init__(
        self,
        config: NameServerConfig | None = None,
        *,
        disk: Disk | None = None,
        tls: TlsConfig | None = None,
        audit: AuditConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.config = config or NameServerConfig()
        check(self.config)
        self._disk = disk or SystemDisk()
        self._routes = RouteTable(on_smallest=self._notify_smallest)
        self._pool = Pool(signer=signer_in(self.config.inner_keys))
        self._accounts = NameServerAccounts(self.config, self._disk)
        self._notices: set[asyncio.Task[None]] = set()
        self._settings = KeyValueSettings()
        self._changed(self.config)
        path, kept = self.config.kv_path, None
        if path is not None:
            kept = KeptSettings(
                self._disk, f"{path}.changed", (self.config,), lambda each: each.name in CHANGEABLE
            )
        self._configuration = Configuration(self.config, kept)
        self._admission = Admission(
            lambda: self._configuration.now.quotas,
            clock=lambda: loop_ms() / 1000,
            user_of=lambda command: command.user or "",
        )
        self._reply_first = one_by_one(self._reply)
        self._server = Server(
            self._answer_first,
            host=self.config.host,
            port=self.config.port,
            limits=ConnectionLimits(
                frame_bytes_max=self.config.frame_bytes_max,
                unfinished_bytes_max=self.config.unfinished_bytes_max,
            ),
            connections_max=self.config.connections_max or None,
            tls=checked_settings(tls),
            ips=IpCounts(self._admission),
        )
        self._audit = audit_log(
            audit, server="nameserver", part="nameserver", beside=_folder_of(self.config, audit),
            disk=self._disk, clock=clock or SystemClock(),
        )  # fmt: skip
        self._answer = NameServerDispatch(
            self._routes,
            self._settings,
            configuration=self._configuration,
            now_ms=loop_ms,
            save=self._save,
            on_change=self._changed,
            accounts=self._accounts,
            trail=None if self._audit is None else audit_trail(self._audit),
        )
        #: Connections over which a broker has registered; their brokers go when they close.
        self._watched: set[Peer] = set()
        self._scan: asyncio.TimerHandle | None = None

    @property
    def routes(self) -> RouteTable:
        """The registered brokers and their topics."""
        return self._routes

    @property
    def address(self) -> str:
        """`host:port` of the listening socket."""
        return self._server.address

    async def _open(self, opened: AsyncExitStack) -> None:
        """Loads the settings and starts to listen.

        Raises:
            UsageError: the address is in use, or not one of this machine.
            CorruptRecord: the settings' file and its backup are damaged, or that of the users.
            ConfigError: users of the settings are not valid, or nobody could enter.
            OSError: the settings' file cannot be written. The check is made now, so that the error
                does not come only when a setting changes.
        """
        self._load()
        self._configuration.load()
        self._changed(self._configuration.now)
        self._check_writable()
        self._accounts.load()
        if self._audit is not None:
            await opened.enter_async_context(self._audit)
        opened.push_async_callback(self._hang_up)
        await opened.enter_async_context(self._server)
        self._configuration.now = replace(self._configuration.now, port=self._server.port)
        self._scan_later()
        opened.push_async_callback(self._finish)

    async def _finish(self) -> None:
        """Finishes the requests in progress."""
        if self._scan is not None:
            self._scan.cancel()
        await self._server.drain(Deadline.after_ms(self._configuration.now.drain_ms))

    async def _hang_up(self) -> None:
        for task in self._notices:
            task.cancel()
        await self._pool.close()

    async def serve(self) -> None:
        """Never returns; it keeps the name server running until it is cancelled."""
        await asyncio.Event().wait()

    def _answer_first(self, commands: Sequence[Command], peer: Peer) -> Sequence[EventualResponse]:
        if not self._configuration.now.quotas:
            return self._reply_first(commands, peer)
        # Who signed it is found out first, for the limits; one that may not pass counts too.
        refused = self._answer.refusal(commands[0], peer)
        answer = self._reply_first if refused is None else lambda asked, peer: [refused]
        try:
            return self._admission.answer_first(
                commands[:1], peer, answer, may_pass=refused is None
            )
        except SystemBusy as error:
            return [Reply(code=error.code, remark=error.remark)]

    def _reply(self, command: Command, peer: Peer) -> Reply:
        reply = self._answer(command, peer)
        has_registered = command.code == RegisterBroker.code and not reply.code
        if has_registered and peer not in self._watched:
            self._watched.add(peer)
            peer.on_close(self._closed)
        return reply

    def _closed(self, peer: Peer) -> None:
        self._watched.discard(peer)
        for gone in self._routes.closed(peer):
            logger.info("%s %d at %s closed its connection", gone.broker, gone.number, gone.address)

    # A broker that cannot be reached learns it by asking: the notice is only quicker.
    def _notify_smallest(self, change: SmallestChange) -> None:
        if not self._configuration.now.notify_smallest:
            return
        header = SmallestNumberChanged(
            min_broker_id=change.number,
            broker_name=change.broker,
            min_broker_addr=change.address,
            offline_broker_addr=change.gone,
            ha_broker_addr=change.ha_address,
        )
        for address in change.told:
            task = asyncio.ensure_future(self._notify(address, header))
            self._notices.add(task)
            task.add_done_callback(self._notices.discard)

    async def _notify(self, address: str, header: SmallestNumberChanged) -> None:
        try:
            await self._pool.send_oneway(address, header, deadline=Deadline.after(_NOTICE_SECONDS))
        except SprocketError as error:
            logger.info("%s is not notified: %s", address, error)

    def _changed(self, config: NameServerConfig) -> None:
        """Tells the tables of the settings in force."""
        self._settings.limit(config.kv_entries_max)
        self._routes.change(
            expiry_ms=config.broker_expiry_ms,
            topics_max=config.topics_max,
            brokers_max=config.brokers_max,
            absent_are_deleted=config.topics_absent_are_deleted,
        )

    def _scan_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._scan = loop.call_later(self._configuration.now.scan_ms / 1000, self._expire)

    def _expire(self) -> None:
        for gone in self._routes.expire(loop_ms()):
            logger.warning("%s %d at %s has been silent", gone.broker, gone.number, gone.address)
            if isinstance(gone.connection, Peer):
                gone.connection.close()
        self._scan_later()

    def _load(self) -> None:
        path = self.config.kv_path
        if path is None:
            return
        damage: CorruptRecord | None = None
        for name in (path, f"{path}.bak"):
            content = self._disk.read(name)
            if content is None:
                continue
            try:
                self._settings.decode(content)
                return
            except CorruptRecord as error:
                logger.warning("%s is damaged: %s", name, error)
                damage = CorruptRecord(f"{name}: {error}")
        if damage is not None:
            raise damage

    def _check_writable(self) -> None:
        path = self.config.kv_path
        if path is not None:
            self._disk.make_directory(os.path.dirname(path) or ".")
            self._disk.replace(f"{path}.probe", b"", backup=False)
            self._disk.remove(f"{path}.probe")

    def _save(self) -> None:
        path = self.config.kv_path
        if path is not None:
            self._disk.make_directory(os.path.dirname(path) or ".")
            self._disk.replace(path, self._settings.encode())


def _folder_of(config: NameServerConfig, audit: AuditConfig | None) -> str:
    """The folder beside which the audit log is.

    Raises:
        ConfigError: there is none, and an audit log without a folder of its own.
    """
    if audit is not None and audit.enabled and audit.path is None and config.kv_path is None:
        raise ConfigError(
            "audit.path (auditLogPath) is needed: this name server has no folder of its own"
        )
    return os.path.dirname(config.kv_path or "") or "."
