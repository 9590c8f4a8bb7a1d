"""RocketMQ's proxy (5.5.0) for the tests: the gRPC front of its broker, in both of its modes.

In local mode one process is proxy and broker::

    with JavaNameServer(work) as names, JavaProxy.local(work, names.address) as proxy:
        ...  # clients connect to proxy.endpoint, mqadmin to names.address

In cluster mode it stands in front of any brokers, Java's or ours::

    with JavaProxy.cluster(work, node.names) as proxy:
        ...
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Self

from tests.compat import javaland
from tests.compat.clients5 import java_classpath
from tests.compat.javaland import HOST, JavaBroker, JavaServer, Settings, free_port

PROXY_VERSION = "5.5.0"
_MAIN = "org.apache.rocketmq.proxy.ProxyStartup"


class JavaProxy(JavaServer):
    """One process of RocketMQ's proxy."""

    main = _MAIN

    def __init__(
        self,
        work: Path,
        namesrv: str,
        *,
        name: str,
        broker: JavaBroker | None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Describe a proxy; with a broker it is in local mode. `settings` are of its JSON file."""
        super().__init__(name, work, free_port(), ("-Xmx512m", "-XX:MaxDirectMemorySize=512m"))
        self.endpoint = self.address
        self.broker = broker
        self.settings = broker.settings if broker is not None else {}
        self.proxy_settings = {
            "rocketMQClusterName": "DefaultCluster",
            "namesrvAddr": namesrv,
            "proxyMode": "CLUSTER" if broker is None else "LOCAL",
            "grpcServerPort": self.port,
            "remotingListenPort": free_port(),
            "localServeAddr": HOST,
            **(settings or {}),
        }

    @classmethod
    def local(
        cls,
        work: Path,
        namesrv: str,
        *,
        broker_settings: Settings | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> Self:
        """Describe a proxy that is a broker too."""
        broker = JavaBroker(work, namesrv, settings=broker_settings)
        return cls(work, namesrv, name="local-proxy", broker=broker, settings=settings)

    @classmethod
    def cluster(
        cls, work: Path, namesrv: str, *, settings: Mapping[str, object] | None = None
    ) -> Self:
        """Describe a proxy in front of the brokers of a name server."""
        return cls(work, namesrv, name="cluster-proxy", broker=None, settings=settings)

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start it, tied to this process."""
        lines = (f"{key}={javaland.setting(value)}\n" for key, value in self.settings.items())
        self.config.write_text("".join(lines))
        proxy_config = self.work / "rmq-proxy.json"
        proxy_config.write_text(json.dumps(self.proxy_settings))
        (self.work / "conf").mkdir(exist_ok=True)
        home = self.broker.work if self.broker is not None else self.work
        classpath = javaland.launched(java_classpath("proxy"))
        command = [
            *javaland.java_command(home, self._jvm, classpath),
            *("driver.Launch", "tied", self.main, "-pc", str(proxy_config)),
            *("-bc", str(self.config)),
        ]
        environment = {**os.environ, "RMQ_PROXY_HOME": str(self.work)}
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment
        )

    def _is_ready(self, said_before: int) -> bool:
        """Whether it has said so, and its broker is on the routes."""
        if b"startup successfully" not in self._said(said_before):
            return False
        if self.broker is None:
            return javaland.answers(self.address)
        return self.broker.is_registered(self._said(said_before))
