"""A name server and a broker in one event loop: a whole RocketMQ for one machine, or for a test.

A proxy for clients of RocketMQ's gRPC service can be there too; it reaches the broker without a
connection.

async with sprocket.Standalone() as node:
    async with sprocket.Producer("app", nameservers=node.nameserver_address) as producer:
        ...
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from sprocket.audit.config import AuditConfig
from sprocket.base.errors import ConfigError, UsageError
from sprocket.base.opened_in_order import OpenedInOrder
from sprocket.broker.broker import Broker
from sprocket.broker.config import BrokerConfig
from sprocket.broker.tables.measures import BrokerMeasures
from sprocket.metrics.config import MetricsConfig
from sprocket.metrics.exporting import Exporting
from sprocket.metrics.health import BrokerHealth, serving
from sprocket.metrics.of_broker import BrokerMetrics
from sprocket.metrics.of_nameserver import NameServerMetrics
from sprocket.metrics.of_proxy import ProxyMetrics
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.nameserver import NameServer
from sprocket.proxy.config import ProxyConfig
from sprocket.remoting.ip_counts import IpCounts
from sprocket.remoting.tls.settings import TlsConfig
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk
from sprocket.runtime.entropy import SystemEntropy
from sprocket.store.config import StoreConfig

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from sprocket.proxy.proxy import Proxy

Config = (
    NameServerConfig
    | BrokerConfig
    | StoreConfig
    | TlsConfig
    | ProxyConfig
    | AuditConfig
    | MetricsConfig
)


class Standalone(OpenedInOrder):
    """Use it with `async with`. Inside, both run and the broker is registered.

    Args:
        store: folder of all data, created if it is missing. None takes a temporary one, which is
            removed at the end.
        nameserver_port, broker_port: 0 takes free ones.
        grpc_port: of the proxy; 0 takes a free one, None runs none.
        needs_grpc: whether it fails if the proxy's port is in use; else it runs without a proxy.
        host: address to listen at.
        configs: settings of the parts, at most one for each. For these parts, host and port come
            from the settings, and the arguments above are ignored.

    Attributes:
        store: the folder, while the node runs.
    """

    def __init__(
        self,
        *,
        store: str | os.PathLike[str] | None = None,
        nameserver_port: int = 0,
        broker_port: int = 0,
        grpc_port: int | None = None,
        needs_grpc: bool = True,
        host: str = "127.0.0.1",
        configs: Iterable[Config] = (),
    ) -> None:
        self.store = None if store is None else os.fspath(store)
        self._is_temporary = store is None
        self._needs_grpc = needs_grpc
        self._nameserver_config = NameServerConfig(host=host, port=nameserver_port)
        self._broker_config = BrokerConfig(host=host, port=broker_port)
        self._store_config = StoreConfig()
        self._tls_config = TlsConfig()
        self._audit_config = AuditConfig()
        self._metrics_config = MetricsConfig()
        self._proxy_config = ProxyConfig(
            host=host, port=grpc_port or 0, enabled=grpc_port is not None
        )
        for config in configs:
            if isinstance(config, NameServerConfig):
                self._nameserver_config = config
            elif isinstance(config, BrokerConfig):
                self._broker_config = config
            elif isinstance(config, TlsConfig):
                self._tls_config = config
            elif isinstance(config, AuditConfig):
                self._audit_config = config
            elif isinstance(config, ProxyConfig):
                self._proxy_config = config
            elif isinstance(config, MetricsConfig):
                self._metrics_config = config
            else:
                self._store_config = config
        self._nameserver: NameServer | None = None
        self._broker: Broker | None = None
        self._proxy: Proxy | None = None
        self._exporting: Exporting | None = None

    @property
    def pages(self) -> str | None:
        """`host:port` of metrics and health; None if none are served."""
        return None if self._exporting is None else self._exporting.address

    @property
    def nameserver_address(self) -> str:
        """`host:port` of the name server, for clients."""
        if self._nameserver is None:
            raise UsageError("the node does not run")
        return self._nameserver.address

    @property
    def broker_address(self) -> str:
        """`host:port` of the broker."""
        if self._broker is None:
            raise UsageError("the node does not run")
        return self._broker.address

    @property
    def grpc_address(self) -> str | None:
        """`host:port` of the proxy; None if none runs."""
        return None if self._proxy is None else self._proxy.address

    async def _open(self, opened: AsyncExitStack) -> None:
        """Starts all. At the end they finish requests in flight, save everything, and stop, the
        name server last.

        Raises:
            UsageError: a port is in use, or the node runs already.
            ConfigError: a setting is invalid.
            DirectoryInUse: another process uses the store.
            StoreError: the store cannot be opened.
        """
        if self._exit is not None:
            raise UsageError("the node runs already")
        opened.callback(self._forget)
        if self._is_temporary:
            self.store = opened.enter_context(
                tempfile.TemporaryDirectory(prefix="sprocket-", ignore_cleanup_errors=True)
            )
        assert self.store is not None
        await self._start(self.store, opened)

    async def _start(self, store: str, opened: AsyncExitStack) -> None:
        exporting = Exporting(self._metrics_config)
        self._exporting = await opened.enter_async_context(exporting)
        exporting.expect("broker")
        disk, tls = SystemDisk(), self._tls_config.whole()
        audit = replace(self._audit_config, path=self._audit_config.path or f"{store}/audit")
        nameserver = NameServer(self._nameserver_settings(store), disk=disk, tls=tls, audit=audit)
        self._nameserver = await opened.enter_async_context(nameserver)
        exporting.add("nameserver", NameServerMetrics(nameserver), serving)
        broker = Broker(
            self._broker_settings(nameserver.address),
            store=self._store_config,
            root=store,
            disk=disk,
            clock=SystemClock(),
            entropy=SystemEntropy(),
            tls=tls,
            audit=audit,
            measures=BrokerMeasures() if self._metrics_config.measures else None,
        )
        self._broker = await opened.enter_async_context(broker)
        metrics = BrokerMetrics(broker, by_queue=self._metrics_config.by_queue)
        exporting.add("broker", metrics, BrokerHealth(broker))
        if self._proxy_config.enabled:
            await self._start_proxy(broker, tls, opened)
        if self._proxy is not None:
            exporting.add("proxy", ProxyMetrics(self._proxy), serving)

    def _forget(self) -> None:
        self._nameserver = self._broker = self._proxy = self._exporting = None

    async def serve(self) -> None:
        """Keeps the node running. Never returns.

        Raises:
            StoreError: the disk failed; leave the `async with` block.
            UsageError: the node does not run.
        """
        if self._broker is None:
            raise UsageError("the node does not run")
        await self._broker.serve()

    async def _start_proxy(self, broker: Broker, tls: TlsConfig, opened: AsyncExitStack) -> None:
        try:
            self._proxy = await opened.enter_async_context(self._new_proxy(broker, tls))
        except ConfigError:
            raise
        except UsageError as error:
            if self._needs_grpc:
                raise
            logger.warning("there is no proxy for gRPC clients: %s", error)

    def _new_proxy(self, broker: Broker, tls: TlsConfig) -> Proxy:
        from sprocket.proxy.proxy import InnerBroker, Proxy

        config, rules = self._proxy_config, self._broker_config
        return Proxy(
            replace(
                config,
                nameservers=(self.nameserver_address,),
                authentication=config.authentication or rules.is_closed,
                authorization=config.authorization or rules.judges_rights,
                inner_keys=config.inner_keys or rules.inner_keys,
            ),
            clock=SystemClock(),
            entropy=SystemEntropy(),
            inner=InnerBroker(
                broker.answer_first,
                broker.address,
                broker.accounts,
                IpCounts(broker, beside=broker.ips),
            ),
            tls=tls,
        )

    def _nameserver_settings(self, store: str) -> NameServerConfig:
        config, folder = self._nameserver_config, f"{store}/nameserver"
        return replace(
            config,
            kv_path=config.kv_path or f"{folder}/kvConfig.json",
            accounts_path=config.accounts_path or f"{folder}/accounts.json",
        )

    def _broker_settings(self, nameserver: str) -> BrokerConfig:
        """The broker's settings, with the node's name server added to its name servers."""
        addresses = dict.fromkeys((nameserver, *self._broker_config.nameservers))
        return replace(self._broker_config, nameservers=tuple(addresses))
