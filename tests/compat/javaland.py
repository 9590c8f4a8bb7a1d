"""Real Java RocketMQ for the tests: name server, broker, admin tool and driven clients.

Everything here is synchronous and blocks; a test that runs a broker in its own event loop calls it
through ``asyncio.to_thread``, or uses :meth:`JavaDriver.ask` and ``async with``.

::

    with JavaNameServer(tmp_path) as names, JavaBroker(tmp_path, names.address) as broker:
        with JavaDriver("4.9.8", work=tmp_path) as driver:
            driver.call("producer.start", group="g", namesrv=names.address)
            driver.call("producer.send", topic="T", body=b"hello")

Leaving a ``with`` block kills the process: an orderly end of the Java broker takes 9 to 20 seconds.
Call ``stop()`` before that where the orderly end matters; a broker with the setting
``popConsumerFSServiceInit`` false, which cannot serve pop requests, stops a little sooner.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextlib
import fcntl
import hashlib
import inspect
import itertools
import json
import logging
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any, Self

import pytest

from sprocket.client.pull_consumer import PullConsumer
from sprocket.message.queue import QueueId

log = logging.getLogger(__name__)

Json = dict[str, Any]
"""One JSON object from the driver. Where it has ``bodyBase64``, it also has ``body`` as bytes."""

SERVER_VERSION = "5.3.3"
CLIENT_VERSIONS = ("4.9.8", "5.3.3")
HOST = "127.0.0.1"
UPDATE_BROKER_CONFIG = 25

_JAVA_FOLDER = Path(__file__).parent / "java"
_TARGET = _JAVA_FOLDER / "target"
# Bounds of what hangs; where much else runs, everything may take ten times as long as usual.
_START_S = 240.0
_STOP_S = 240.0
_CALL_S = 180.0
_SEEN_S = 120.0

# A short-lived process gains nothing from the second compiler or from a parallel collector.
_CHEAP = ("-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")

#: Below the ports that Linux gives to outgoing connections; each worker of a run has a part.
_PORTS = range(12_000, 32_000)
_PARTS = 8
_ANY = random.SystemRandom()
_given_ports: set[int] = set()

_ADMIN_MAIN = "org.apache.rocketmq.tools.command.MQAdminStartup"

Settings = Mapping[str, object]
"""Lines of a Java configuration file; true and false may be given as Python's."""

BROKER_DEFAULTS: Settings = {
    "brokerIP1": HOST,
    "brokerIP2": HOST,
    "bindAddress": HOST,
    "autoCreateTopicEnable": True,
    "autoCreateSubscriptionGroup": True,
    "enablePropertyFilter": True,
    # Small files; a commit log file still holds a message of the greatest size.
    "mappedFileSizeCommitLog": 16 * 1024 * 1024,
    "mappedFileSizeConsumeQueue": 3000 * 20,
    "mappedFileSizeTimerLog": 1000 * 52,
    "maxHashSlotNum": 10_000,
    "maxIndexNum": 40_000,
    "warmMapedFileEnable": False,
    "transientStorePoolEnable": False,
    # A slow machine is no reason to refuse messages.
    "osPageCacheBusyTimeOutMills": 60_000,
    "waitTimeMillsInSendQueue": 60_000,
    "waitTimeMillsInPullQueue": 60_000,
    "waitTimeMillsInTransactionQueue": 60_000,
    "waitTimeMillsInAckQueue": 60_000,
    "waitTimeMillsInAdminBrokerQueue": 60_000,
    # Nor is a full disk.
    "diskMaxUsedSpaceRatio": 99,
    "diskSpaceCleanForciblyRatio": 99,
    "diskSpaceWarningLevelRatio": 99,
}

QUICK_TRANSACTIONS: Settings = {
    "transactionCheckInterval": 1000,
    "transactionTimeOut": 1000,
    # Ended half messages are noted in batches; a check that comes before the note asks about
    # a message that is committed already, and a second commit delivers it twice.
    "transactionOpBatchInterval": 10,
}
"""Broker settings: ask about an undecided half message after one or two seconds."""

QUICK_REBALANCE = {"rocketmq.client.rebalance.waitInterval": "1000"}
"""Driver properties: share queues out every second, not every twenty, even if no news came.

A new group finds its retry topic only when it does so the second time.
"""


class JavaProcessError(Exception):
    """A Java process did not start, or ended too early; the text ends with what it last said."""


class BuildError(Exception):
    """Maven could not fetch or compile the Java side; the text ends with what it last said."""


class JavaCallError(Exception):
    """The driver answered that a command failed: with the class, code and text of the exception."""

    def __init__(self, command: str, answer: Json) -> None:
        """Take the exception apart that the answer tells of."""
        self.error: str = answer["error"]
        self.code: int | None = answer["code"]
        self.message: str = answer["message"]
        super().__init__(f"{command}: {self.error} {self.code}: {self.message}")


_admin_tool: JavaAdmin | None = None


def available() -> str | None:
    """Say why there is no Java here, or None if there is."""
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    return f"needs Java and Maven, not found: {', '.join(missing)}" if missing else None


def require_java() -> None:
    """Skip the running test where there is no Java; in CI, where it is always expected, fail."""
    reason = available()
    if reason is None:
        ensure_built()
    elif os.environ.get("CI") == "true":
        pytest.fail(reason)
    else:
        pytest.skip(reason)


def ensure_built() -> None:
    """Fetch the Java libraries and compile the driver, unless that is done already."""
    _TARGET.mkdir(exist_ok=True)
    with _locked(_TARGET / "lock"):
        digest = _sources_digest()
        stamp = _TARGET / "built"
        if _read(stamp) == digest and _libraries_exist():
            return
        if _maven("-o").returncode != 0:
            _maven_or_raise()
        stamp.write_text(digest)


def wait_until(seen: Callable[[], object], within: float = _SEEN_S) -> None:
    """Wait until something can be seen, or complain that it cannot be seen in time."""
    deadline = time.monotonic() + within
    while not seen():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it has not come about within {within:g} s")
        time.sleep(0.1)


async def until(seen: Callable[[], object], within: float = _SEEN_S) -> None:
    """Wait for the same beside other tasks; what is awaitable is awaited."""
    deadline = time.monotonic() + within
    while not (await found if inspect.isawaitable(found := seen()) else found):
        if time.monotonic() > deadline:
            raise TimeoutError(f"it has not come about within {within:g} s")
        await asyncio.sleep(0.05)


async def queued(reader: PullConsumer, queue: QueueId, end: int) -> None:
    """Wait until a queue ends there: Java's broker acknowledges before its queues show it."""

    async def has_come() -> bool:
        return await reader.max_offset(queue) >= end

    await until(has_come)


def free_port() -> int:
    """Return a port that nothing has now, and that no outgoing connection will get.

    A server that is away for a while, between two parts of a story, must find its port free.
    """
    return _free_port(also=())


def free_broker_port() -> int:
    """Return a free port for a broker: the second one below, its fast port, is free too, and the
    next one, where our broker's slaves connect."""
    return _free_port(also=(-2, 1))


def _free_port(*, also: Sequence[int]) -> int:
    """Return a port that is free, like those so far from it; none is given a second time."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PARTS
    part = len(_PORTS) // _PARTS
    while True:
        port = _ANY.choice(_PORTS[worker * part + 2 : (worker + 1) * part])
        wanted = {port, *(port + distance for distance in also)}
        if wanted.isdisjoint(_given_ports) and all(map(_is_free, wanted)):
            _given_ports.update(wanted)
            return port


def _is_free(port: int) -> bool:
    """Whether a server could take a port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def mqadmin(*args: str, namesrv: str | Sequence[str] | None = None, within: float = _CALL_S) -> str:
    """Run the Java admin tool and return all that it prints, its stack traces included.

    One process runs it again and again: starting one each time takes seconds. A command whose
    question was not answered within the tool's own five seconds is given once more.
    """
    global _admin_tool
    if _admin_tool is None or not _admin_tool.is_running:
        _admin_tool = JavaAdmin(Path(tempfile.mkdtemp(prefix="javaland-"))).start()
        atexit.register(_admin_tool.kill)
    where = [] if namesrv is None else ["-n", _addresses(namesrv)]
    for _ in range(5):
        printed = _admin_tool.run(*args, *where, within=within)
        if "Exception" in printed:
            log.warning("mqadmin %s:\n%s", " ".join(args), printed)
        if "RemotingTimeoutException" not in printed:
            break
    return printed


class JavaProcess:
    """One Java process, with a working folder of its own and its output in ``log``."""

    def __init__(self, name: str, work: Path) -> None:
        """Prepare the folder ``work/name``; nothing runs before :meth:`start`."""
        self.name = name
        self.work = work / name
        self.work.mkdir(parents=True, exist_ok=True)
        self.log = self.work / "output.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start the process and wait until it is ready."""
        require_java()
        if self.is_running:
            raise JavaProcessError(f"{self.name} runs already")
        said_before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = self._spawn(log)
        try:
            self._wait_until_ready(said_before, time.monotonic() + _START_S)
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self, within: float = _STOP_S) -> None:
        """Ask the process to end in order (SIGTERM) and wait for it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(within)
            self._forget()

    def kill(self) -> None:
        """End the process at once (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget()

    @property
    def is_running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of the running process."""
        return self._running().pid

    def output(self) -> str:
        """Return all that the process has written, except a driver's answers."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self, lines: int = 40) -> str:
        """Return the last lines of the output."""
        return "\n".join(self.output().splitlines()[-lines:])

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *error: object) -> None:
        """Kill."""
        self.kill()

    async def __aenter__(self) -> Self:
        """Start, without blocking the event loop."""
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *error: object) -> None:
        """Kill, without blocking the event loop."""
        await asyncio.to_thread(self.kill)

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the process itself; its standard input stays open as long as this one lives."""
        raise NotImplementedError

    def _is_ready(self, said_before: int) -> bool:
        """Whether the process can be used; ``said_before`` bytes of the log are older than it."""
        raise NotImplementedError

    def _wait_until_ready(self, said_before: int, deadline: float) -> None:
        """Wait for :meth:`_is_ready`, and explain if the process ends or takes too long."""
        while not self._is_ready(said_before):
            if not self.is_running:
                raise JavaProcessError(f"{self.name} ended while starting:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise JavaProcessError(f"{self.name} is not ready in time:\n{self.tail()}")
            time.sleep(0.05)

    def _running(self) -> subprocess.Popen[bytes]:
        """Return the process, or complain that there is none."""
        if self._process is None:
            raise JavaProcessError(f"{self.name} was not started")
        return self._process

    def _forget(self) -> None:
        """Let go of a process that has ended."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process = None


class JavaServer(JavaProcess):
    """A Java server with a configuration file and a port on the loopback address."""

    main: str
    """The class to run."""
    settings: Settings
    """The lines of the configuration file, which is written at each start."""

    def __init__(self, name: str, work: Path, port: int, jvm: Sequence[str]) -> None:
        """Keep what the command line needs; ``jvm`` are more options of the virtual machine."""
        super().__init__(name, work)
        self.port = port
        self.address = f"{HOST}:{port}"
        self.config = self.work / "server.conf"
        self._jvm = tuple(jvm)

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the server, tied to this process, with all its output in the log."""
        lines = (f"{key}={setting(value)}\n" for key, value in self.settings.items())
        self.config.write_text("".join(lines))
        # Making a key pair at start-up would take longer than everything else together.
        options = ["-Dtls.server.mode=disabled", *self._jvm]
        command = [
            *_java("server", self.work, options),
            *("driver.Launch", "tied", self.main, "-c", str(self.config)),
        ]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def start(self) -> Self:
        """Start it; once more, with what it said in the log, if it could not begin at once."""
        try:
            return super().start()
        except JavaProcessError as error:
            log.warning("starting %s once more: %s", self.name, error)
            return super().start()

    def _is_ready(self, said_before: int) -> bool:
        """Whether the server has said so and accepts connections."""
        return b"boot success" in self._said(said_before) and answers(self.address)

    def _said(self, said_before: int) -> bytes:
        """Return what the running server has written so far."""
        with self.log.open("rb") as log:
            log.seek(said_before)
            return log.read()


class JavaNameServer(JavaServer):
    """A Java name server."""

    main = "org.apache.rocketmq.namesrv.NamesrvStartup"

    def __init__(
        self,
        work: Path,
        *,
        name: str = "name-server",
        port: int | None = None,
        settings: Settings | None = None,
        jvm: Sequence[str] = (),
    ) -> None:
        """Describe a name server that keeps its files below ``work / name``."""
        super().__init__(name, work, port or free_port(), ("-Xmx128m", *jvm))
        fixed = {
            "listenPort": self.port,
            "bindAddress": HOST,
            "kvConfigPath": self.work / "kvConfig.json",
        }
        self.settings = {**fixed, **(settings or {})}


class JavaController(JavaServer):
    """RocketMQ's controller: the only one of its cluster, unless ``peers`` names more."""

    main = "org.apache.rocketmq.controller.ControllerStartup"

    def __init__(
        self,
        work: Path,
        *,
        name: str = "controller",
        port: int | None = None,
        peers: Mapping[str, int] | None = None,
        settings: Settings | None = None,
        jvm: Sequence[str] = (),
    ) -> None:
        """Describe a controller; ``peers`` are the ports of all by name, its own included."""
        peers = peers or {"n0": port or free_port()}
        me = name if name in peers else next(iter(peers))
        super().__init__(name, work, peers[me], ("-Xmx256m", *jvm))
        fixed = {
            "controllerDLegerGroup": "group1",
            "controllerDLegerPeers": ";".join(f"{k}-{HOST}:{v}" for k, v in peers.items()),
            "controllerDLegerSelfId": me,
            "controllerStorePath": self.work / "store",
            "mappedFileSize": 4 * 1024 * 1024,
        }
        self.settings = {**fixed, **(settings or {})}


class JavaBroker(JavaServer):
    """A Java broker. After ``stop()`` or ``kill()``, ``start()`` opens the same ``store`` again."""

    main = "org.apache.rocketmq.broker.BrokerStartup"

    def __init__(
        self,
        work: Path,
        namesrv: str | Sequence[str],
        *,
        name: str = "broker-a",
        cluster: str = "DefaultCluster",
        broker_id: int = 0,
        port: int | None = None,
        ha_port: int | None = None,
        store: Path | None = None,
        settings: Settings | None = None,
        jvm: Sequence[str] = (),
    ) -> None:
        """Describe a broker; ``settings`` are lines of its broker.conf, stronger than all else."""
        options = ("-Xmx512m", "-XX:MaxDirectMemorySize=256m", *jvm)
        folder = name if broker_id == 0 else f"{name}-{broker_id}"
        super().__init__(folder, work, port or free_broker_port(), options)
        self.store = store or self.work / "store"
        self.name_servers = _addresses(namesrv).split(";")
        self.ha_port = ha_port or free_port()
        fixed = {
            "brokerClusterName": cluster,
            "brokerName": name,
            "brokerId": broker_id,
            "brokerRole": "SLAVE" if broker_id else "ASYNC_MASTER",
            "namesrvAddr": ";".join(self.name_servers),
            "listenPort": self.port,
            "haListenPort": self.ha_port,
            "storePathRootDir": self.store,
            "storePathCommitLog": self.store / "commitlog",
        }
        self.settings = {**BROKER_DEFAULTS, **fixed, **(settings or {})}

    def _is_ready(self, said_before: int) -> bool:
        """Whether the broker runs, and every running name server knows it.

        At its start the broker leaves out name servers that it has no connection to yet, and tries
        again only after ten seconds; setting its permission makes it register at once.
        """
        return super()._is_ready(said_before) and self.is_registered(self._said(said_before))

    def is_registered(self, said: bytes) -> bool:
        """Whether it has said so of every running name server; if not, it is asked to."""
        expected = (address for address in self.name_servers if answers(address))
        if all(f"completed. TargetHost={address}".encode() in said for address in expected):
            return True
        time.sleep(0.2)
        with contextlib.suppress(OSError):
            _ask(self.port, UPDATE_BROKER_CONFIG, b"brokerPermission=6")
        return False


class JavaAdmin(JavaProcess):
    """The admin tool, run as often as one likes; one run at a time."""

    def __init__(self, work: Path, properties: Mapping[str, str] | None = None) -> None:
        """Describe it; it needs a folder for its output only. ``properties`` are Java's."""
        super().__init__("admin", work)
        self._turn = threading.Lock()
        self._options = [f"-D{key}={text}" for key, text in (properties or {}).items()]

    def run(self, *args: str, within: float, until: str | None = None) -> str:
        """Run it once and return what it prints. A run that takes too long ends the process.

        A command that goes on for ever is interrupted once it has printed what ``until`` matches.
        """
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        with self._turn:
            late = threading.Timer(within, process.kill)
            late.start()
            try:
                process.stdin.write(json.dumps({"args": args, "until": until}).encode() + b"\n")
                process.stdin.flush()
                line = process.stdout.readline()
            finally:
                late.cancel()
        if not line:
            raise JavaProcessError(f"mqadmin {' '.join(args)} has ended:\n{self.tail()}")
        printed: str = json.loads(line)["printed"]
        return printed

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the process that waits for runs."""
        options = ["-Xmx128m", *self._options]
        java = _java("server", self.work, options, logging="silent.xml")
        return subprocess.Popen(
            [*java, "driver.Launch", "many", _ADMIN_MAIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=self.work,  # some commands write files into the folder they run in
        )

    def _is_ready(self, said_before: int) -> bool:
        """It is asked at once; what comes too early waits in the pipe."""
        return True


class JavaDriver(JavaProcess):
    """A Java client that does what it is told.

    The commands and their arguments are listed in ``java/README.md``. Arguments keep the names
    they have there, in Java's spelling; bytes are sent as base64.
    """

    def __init__(
        self,
        version: str = SERVER_VERSION,
        *,
        work: Path | None = None,
        name: str | None = None,
        properties: Mapping[str, str] | None = None,
        jvm: Sequence[str] = (),
    ) -> None:
        """Describe a driver; ``properties`` are Java system properties, which clients read."""
        if version not in CLIENT_VERSIONS:
            raise ValueError(f"the driver is built for {CLIENT_VERSIONS}, not {version}")
        work = work or Path(tempfile.mkdtemp(prefix="javaland-"))
        super().__init__(name or f"driver-{version}", work)
        self.version = version
        self._options = [*jvm, *(f"-D{key}={text}" for key, text in (properties or {}).items())]
        self._numbers = itertools.count(1)
        self._writing = threading.Lock()
        self._heard = threading.Condition()
        self._events: list[Json] = []
        self._pending: dict[int, Future[Json]] = {}
        self._reading: threading.Thread | None = None

    def stop(self, within: float = _STOP_S) -> None:
        """Shut all clients down in order, so that they commit and unregister; then end."""
        if self.is_running:
            self.call("stopAll", within=within)
        super().stop(within)

    def call(self, command: str, /, *, within: float = _CALL_S, **args: object) -> Json:
        """Run one command and return its answer; raise :class:`JavaCallError` if it failed."""
        answer = self.submit(command, **args).result(within)
        if not answer["ok"]:
            raise JavaCallError(command, answer)
        return answer

    def submit(self, command: str, /, **args: object) -> Future[Json]:
        """Start one command; the future has its answer, failed or not."""
        number = next(self._numbers)
        answer: Future[Json] = Future()
        self._pending[number] = answer
        request = {"id": number, "command": command, "args": _encodable(args)}
        stdin = self._running().stdin
        assert stdin is not None
        with self._writing:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        return answer

    def wait_queued(self, topic: str, queue: int, end: int, **more: object) -> None:
        """Wait until a queue ends there: Java's broker acknowledges before its queues show it.

        It is asked through a producer or pull consumer (`client`), else through the only producer.
        """
        asked: Json = {"topic": topic, "queueId": queue, **more}

        def has_come() -> bool:
            try:
                return bool(self.call("query.offsets", **asked)["maxOffset"] >= end)
            except JavaCallError:  # the route, too, may take a moment
                return False

        wait_until(has_come)

    async def ask(self, command: str, /, *, within: float = _CALL_S, **args: object) -> Json:
        """Do the same as :meth:`call`, without blocking the event loop."""
        return await asyncio.to_thread(self.call, command, within=within, **args)

    def events(self, kind: str | None = None) -> list[Json]:
        """Return all events so far, or those of one kind."""
        with self._heard:
            return [event for event in self._events if kind in (None, event["event"])]

    def wait_events(
        self,
        kind: str,
        n: int,
        timeout: float = _SEEN_S,
        where: Callable[[Json], bool] = lambda _: True,
    ) -> list[Json]:
        """Wait until there are ``n`` events of a kind that fit, and return all that fit."""
        deadline = time.monotonic() + timeout
        fitting: list[Json] = []
        seen = 0
        with self._heard:
            while True:
                news = itertools.islice(self._events, seen, None)
                fitting += [event for event in news if event["event"] == kind and where(event)]
                seen = len(self._events)
                if len(fitting) >= n:
                    return fitting
                if not self._heard.wait(deadline - time.monotonic()):
                    raise TimeoutError(f"{len(fitting)} of {n} events: {kind}\n{self.tail(15)}")

    def wait_messages(
        self, n: int, timeout: float = _SEEN_S, *, consumer: str | None = None
    ) -> list[Json]:
        """Wait until ``n`` messages were consumed in all, or by one consumer; return them."""
        return self.wait_events(
            "message", n, timeout, lambda event: consumer in (None, event["consumer"])
        )

    async def messages(
        self, n: int, timeout: float = _SEEN_S, *, consumer: str | None = None
    ) -> list[Json]:
        """Do the same as :meth:`wait_messages`, without blocking the event loop."""
        return await asyncio.to_thread(self.wait_messages, n, timeout, consumer=consumer)

    def clear_events(self) -> None:
        """Forget all events so far."""
        with self._heard:
            self._events.clear()

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the driver and the thread that reads its answers."""
        options = ["-Xmx256m", f"-Drocketmq.client.logRoot={self.work}", *self._options]
        process = subprocess.Popen(
            [*_java(f"client-{self.version}", self.work, options), "driver.Driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        assert process.stdout is not None
        self.clear_events()
        self._reading = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._reading.start()
        return process

    def _forget(self) -> None:
        """Let go of the process, when the last that it said before its end has been heard."""
        super()._forget()
        if self._reading is not None:
            self._reading.join(_CALL_S)

    def _is_ready(self, said_before: int) -> bool:
        """Whether the driver waits for commands."""
        return bool(self.events("ready"))

    def _read(self, lines: IO[bytes]) -> None:
        """Sort the driver's lines into answers and events, until it ends."""
        with lines:
            for line in lines:
                if not line.startswith(b"{"):
                    continue  # a warning of the virtual machine itself
                heard: Json = json.loads(line, object_hook=_with_body)
                if "event" in heard:
                    self._hear(heard)
                else:
                    self._pending.pop(heard["id"]).set_result(heard)
        self._fail_pending()

    def _hear(self, event: Json) -> None:
        """Keep an event and wake who waits for one."""
        with self._heard:
            self._events.append(event)
            self._heard.notify_all()

    def _fail_pending(self) -> None:
        """Tell those who still wait for an answer that none will come."""
        while self._pending:
            _, answer = self._pending.popitem()
            answer.set_exception(JavaProcessError(f"{self.name} has ended:\n{self.tail()}"))


def _java(
    module: str, home: Path, options: Sequence[str], logging: str = "logging.xml"
) -> list[str]:
    """Return the start of a command line for a module: virtual machine, options, class path."""
    return java_command(home, options, _classpath(module), logging)


def java_command(
    home: Path, options: Sequence[str], classpath: str, logging: str = "logging.xml"
) -> list[str]:
    """Return the start of a command line: virtual machine, options, class path."""
    return [
        *("java", *_CHEAP),
        f"-Duser.home={home}",
        f"-Drocketmq.home.dir={home}",
        f"-Drocketmq.client.localOffsetStoreDir={home / 'offsets'}",
        f"-Drmq.logback.configurationFile={_JAVA_FOLDER / logging}",
        *options,
        *("-cp", classpath),
    ]


def _classpath(module: str) -> str:
    """Return the libraries of a module, behind the compiled driver."""
    libraries = (_TARGET / module / "classpath").read_text().strip()
    return launched(libraries, SERVER_VERSION if module == "server" else module[len("client-") :])


def launched(libraries: str, version: str = SERVER_VERSION) -> str:
    """Put the compiled driver, which has the launcher, before a class path."""
    return f"{_TARGET / f'client-{version}' / 'classes'}{os.pathsep}{libraries}"


def _libraries_exist() -> bool:
    """Whether every library on the class paths is still where Maven put it."""
    modules = ("server", *(f"client-{version}" for version in CLIENT_VERSIONS))
    lists = [_read(_TARGET / module / "classpath") for module in modules]
    paths = [path for text in lists if text for path in text.strip().split(os.pathsep)]
    return None not in lists and all(Path(path).exists() for path in paths)


def _maven(*options: str) -> subprocess.CompletedProcess[str]:
    """Compile the driver and write the class paths."""
    return subprocess.run(
        ["mvn", "-B", "-q", *options, "-f", str(_JAVA_FOLDER / "pom.xml"), "process-classes"],
        env={"MAVEN_OPTS": "-Xmx512m", **os.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _maven_or_raise() -> None:
    """Run Maven with the network, and say what it said if that fails."""
    done = _maven()
    if done.returncode != 0:
        raise BuildError("Maven failed:\n" + "\n".join(done.stdout.splitlines()[-30:]))


def _sources_digest() -> str:
    """Return a digest of all that the build depends on."""
    digest = hashlib.sha256()
    sources = [*_JAVA_FOLDER.glob("**/pom.xml"), *_JAVA_FOLDER.glob("src/**/*.java")]
    for source in sorted(sources):
        digest.update(str(source.relative_to(_JAVA_FOLDER)).encode() + source.read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes: one builds, the others wait for it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _read(path: Path) -> str | None:
    """Return the text of a file, None if there is none."""
    return path.read_text() if path.exists() else None


def answers(address: str) -> bool:
    """Whether something accepts connections at an address."""
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        probe.settimeout(10.0)
        return probe.connect_ex((host, int(port))) == 0


def _ask(port: int, code: int, body: bytes) -> bytes:
    """Send one request to a server of this machine and return the start of its response."""
    fields = {"code": code, "flag": 0, "opaque": 1, "language": "OTHER", "version": 479}
    header = json.dumps(fields).encode()
    frame = struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body
    with socket.create_connection((HOST, port), timeout=60.0) as connection:
        connection.sendall(frame)
        return connection.recv(4096)


def _addresses(namesrv: str | Sequence[str]) -> str:
    """Join the addresses of several name servers in RocketMQ's way."""
    return namesrv if isinstance(namesrv, str) else ";".join(namesrv)


def setting(value: object) -> str:
    """Write a value the way Java's configuration files have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _encodable(value: object) -> object:
    """Replace bytes, however deep, by base64 text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {key: _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value


def _with_body(value: Json) -> Json:
    """Add the body as bytes to an object that has it as text."""
    if "bodyBase64" in value:
        value["body"] = base64.b64decode(value["bodyBase64"])
    return value
