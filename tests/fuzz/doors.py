"""Targets besides frames and stores: TLS, the replication stream, files and texts from outside.

As in `targets`, each raises nothing but what its docstring allows.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import gzip
import shutil
import ssl
import struct
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from sprocket.base.config_files import ConfigFile, load
from sprocket.base.decoding import decode
from sprocket.base.errors import (
    ConfigError,
    CorruptRecord,
    ProtocolError,
    StoreError,
    SystemFailure,
    UsageError,
)
from sprocket.broker.tables import attributes
from sprocket.cli.loading import kinds
from sprocket.message import pop_handle, record
from sprocket.message.inner_batch import unwrapped
from sprocket.proxy.config import ProxyConfig
from sprocket.remoting.tls.certificates import WatchedFiles, asking, serving, watched_serving
from sprocket.remoting.tls.entrance import Entrance
from sprocket.remoting.tls.layer import TlsLayer
from sprocket.remoting.tls.settings import ClientTls, TlsConfig
from sprocket.remoting.turns import Turns
from sprocket.replication.epoch_frames import EpochFrameDecoder, MasterHello, MemberDecoder
from sprocket.replication.epochs import EpochList
from sprocket.replication.frames import FrameDecoder, ReportDecoder
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.store.writing.replica_log import CopyMismatch
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import MemoryDisk
from tests.certificates import OPENSSL, Authority
from tests.fuzz.loop import run
from tests.store.batches import CONFIG as BATCHES
from tests.store.batches import disk_with_topic, put
from tests.store.making import HOST, ROOT, SMALL, a_draft, opened

_GOLDEN = Path(__file__).parent.parent / "golden"
_STREAM_BYTES_MAX = 1 << 14
#: A copy may have gaps of 300,000 messages, which should not take so many files.
_COPIES = replace(SMALL, queue_file_bytes=20_000)


class _Line(asyncio.Transport):
    """The transport below a protocol that is fed by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_closed = False
        self.protocol: asyncio.BaseProtocol | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def taken(self) -> bytes:
        """What was sent since the last time."""
        sent, self.sent = self.sent, b""
        return sent


class _Above(asyncio.Protocol):
    """Collects what comes out of TLS, or through an entrance."""

    def __init__(self) -> None:
        self.received = b""
        self.is_over = False

    def data_received(self, data: bytes) -> None:
        self.received += data

    def eof_received(self) -> None:
        self.is_over = True


@functools.cache
def _authority() -> tuple[Authority, TlsConfig]:
    assert OPENSSL is not None, "the command openssl makes the certificates"
    folder = tempfile.mkdtemp(prefix="sprocket-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    authority = Authority(Path(folder))
    issued = authority.issue("node")
    return authority, TlsConfig(certificate=issued.certificate, key=issued.key)


@functools.cache
def _contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's."""
    authority, config = _authority()
    return serving(config), asking(ClientTls(authorities=authority.path))


@functools.cache
def _files() -> WatchedFiles:
    return watched_serving(_authority()[1])


def tls_first_bytes(data: bytes) -> None:
    """The first bytes of a connection at a port that takes TLS: whole, and one by one.

    Plain ones come through as they are; others become a handshake that goes on, or is closed.
    """
    if data:
        for size in (len(data), 1):
            run(_enter(data[:2_000], size))


async def _enter(data: bytes, size: int) -> None:
    loop = asyncio.get_running_loop()
    _, config = _authority()
    entrance = Entrance(config, Turns(loop), silent_seconds=60.0, files=_files())
    above, line = _Above(), _Line()
    line.protocol = entrance.greet(lambda: above)
    line.protocol.connection_made(line)
    for at in range(0, len(data), size):
        assert isinstance(line.protocol, asyncio.Protocol)
        if not line.is_closed:
            line.protocol.data_received(data[at : at + size])
    if data[0] != 0x16:
        assert above.received == data
        assert not entrance.count
    else:
        assert not above.received
    line.protocol.connection_lost(None)
    assert not entrance.count
    entrance.close()


def tls_handshakes(data: bytes) -> None:
    """A handshake, and records after it, of which one flight is damaged.

    Two bytes say which flight of which side and where; the rest lies there. It ends, or waits for
    more; nobody gets plain bytes that were not sent.
    """
    if len(data) > 3:
        run(_shake(data[0], int.from_bytes(data[1:3], "big"), data[3:400]))


async def _shake(flight: int, at: int, patch: bytes) -> None:
    server_context, client_context = _contexts()
    seen = [_Above(), _Above()]
    lines = [_Line(), _Line()]
    sides = [
        TlsLayer(
            context, lambda number=number: seen[number], seconds=60.0, is_client=bool(number),
            on_done=lambda layer, error: None, server_name="localhost" * number or None,
        )
        for number, context in enumerate((server_context, client_context))
    ]  # fmt: skip
    for side, line in zip(sides, lines, strict=True):
        side.connection_made(line)
    for number in range(12):
        source = number % 2
        if number == 6 and sides[1].above is not None:
            sides[1].write(b"hello " * 50)
        sent = bytearray(lines[1 - source].taken())
        if number == flight % 12 and sent:
            place = at % (len(sent) + 1)
            sent[place : place + len(patch) * (flight & 0x80 == 0)] = patch
        if sent and not lines[source].is_closed:
            sides[source].data_received(bytes(sent))
    for side, line in zip(sides, lines, strict=True):
        assert len(line.sent) < 1 << 18
        side.connection_lost(None)
    assert (b"hello " * 50).startswith(seen[0].received)
    assert not seen[1].received


def slave_streams(data: bytes) -> None:
    """What a master reads from slaves, in both forms. However it is cut, it means the same, unless
    it is refused."""
    for decoder in (ReportDecoder, MemberDecoder):
        whole = _fed(decoder(), [data])
        cut = _fed(decoder(), [data[at : at + 1] for at in range(len(data))])
        assert whole == cut


def master_streams(data: bytes) -> None:
    """What a slave reads from masters, in both forms; what it takes, it writes into its log.

    However it is cut, it means the same, unless it is refused. A log is refused in words.
    """
    data = data[:_STREAM_BYTES_MAX]
    for decoder in (FrameDecoder, EpochFrameDecoder):
        frames = _fed(decoder(), [data])
        assert frames == _fed(decoder(), [data[at : at + 7] for at in range(0, len(data), 7)])
        if frames:
            with contextlib.suppress(StoreError, ProtocolError, CopyMismatch):
                run(_copied(frames))


class _Decoder(Protocol):
    def feed(self, data: bytes, /) -> Sequence[Any]: ...


def _fed(decoder: _Decoder, parts: list[bytes]) -> list[Any] | None:
    """What the parts hold; None if they are refused."""
    found: list[Any] = []
    try:
        for part in parts:
            found += decoder.feed(part)
    except ProtocolError:
        return None
    return found


async def _copied(frames: list[Any]) -> None:
    store = await Store.open(
        disk=MemoryDisk(), clock=ManualClock(), root=ROOT, config=_COPIES, store_host=HOST,
        tag_codes=TAGS_ONLY, is_copy=True,
    )  # fmt: skip
    try:
        copy = store.replica.copy()
        for frame in frames:
            copy.append(frame.offset, frame.data)
        _read_all(store)
    finally:
        await store.close()


def _read_all(store: Store) -> None:
    for topic, numbers in store.queues().items():
        for number in numbers:
            offset = int(store.min_offset(topic, number))
            for _ in range(64):
                if offset >= store.max_offset(topic, number):
                    break
                found = store.read(topic, number, offset, count_max=4, bytes_max=1 << 16)
                for part in found.parts:
                    for message in record.scan(part):
                        assert message.record_bytes > 0
                assert found.next_offset > offset
                offset = int(found.next_offset)


def certificate_files(data: bytes) -> None:
    """The files of a server's certificate, key and authorities: taken, or refused in words.

    The first byte says which of them has these bytes.
    """
    if not data:
        return
    authority, config = _authority()
    path = authority.folder / "fuzzed.pem"
    path.write_bytes(data[1:])
    chosen = [
        {"certificate": str(path)}, {"key": str(path)},
        {"authorities": str(path), "client_certificates": "require"},
        {"certificate": str(path), "key": None},
    ][data[0] % 4]  # fmt: skip
    settings = {"certificate": config.certificate, "key": config.key, **chosen}
    with contextlib.suppress(ConfigError):
        serving(TlsConfig(**settings))  # type: ignore[arg-type]


def pop_handles(data: bytes) -> None:
    """Handles of popped messages, and the lists that come with them."""
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(UsageError):
        found = pop_handle.PopHandle.parse(text)
        assert pop_handle.PopHandle.parse(found.encode()) == found
        assert isinstance(found.due_ms, int)
        assert isinstance(found.is_in_order, bool)
    for read in (pop_handle.read_order_counts, pop_handle.read_offsets):
        with contextlib.suppress(UsageError):
            read(text)


def topic_attributes(data: bytes) -> None:
    """Changes of attributes: one that is taken leaves valid ones, and may be repeated."""
    text = data.decode("utf-8", "replace")
    for rules in (attributes.OF_TOPICS, attributes.OF_GROUPS):
        with contextlib.suppress(SystemFailure):
            asked = attributes.parse(text)
            made = attributes.altered(None, asked, rules)
            assert (
                attributes.altered(None, {f"+{name}": made[name] for name in made}, rules) == made
            )


def inner_batches(data: bytes) -> None:
    """Records that are batches: taken apart, or refused as damaged."""
    with contextlib.suppress(CorruptRecord):
        for envelope in record.scan(data):
            for message in unwrapped(envelope):
                assert message.queue_offset >= 0 or envelope.queue_offset < 0


def batch_queues(data: bytes) -> None:
    """A store with batch queues of which a piece was overwritten: opened or refused, read or
    refused; see `targets.stores`."""
    if len(data) < 4:
        return
    disk, paths = _batch_store()
    if data[0] & 0x80:
        disk.replace(f"{ROOT}/abort", b"")
    path = paths[(data[0] & 0x7F) % len(paths)]
    content = bytearray(disk.read(path) or b"")
    at = int.from_bytes(data[1:3], "big") % (len(content) + 1)
    room = len(content) - at
    content[at : at + len(data) - 3] = data[3 : 3 + room]
    disk.replace(path, bytes(content), backup=False)
    with contextlib.suppress(StoreError, UsageError, CorruptRecord):
        run(_read_batches(disk))


async def _read_batches(disk: MemoryDisk) -> None:
    store = await opened(disk, config=BATCHES)
    try:
        _read_all(store)
    finally:
        await store.close()


def _batch_store() -> tuple[MemoryDisk, list[str]]:
    disk, paths = _filled_batch_store()
    return disk.after_kill(), paths


@functools.cache
def _filled_batch_store() -> tuple[MemoryDisk, list[str]]:
    async def fill() -> MemoryDisk:
        disk = disk_with_topic()
        store = await opened(disk, config=BATCHES)
        for number in range(12):
            put(store, *(b"%d" % each for each in range(number % 4 + 1)))
        await store.close()
        return disk

    disk = run(fill())
    return disk, _paths(disk, ROOT)


def _paths(disk: MemoryDisk, folder: str) -> list[str]:
    found = []
    for name in disk.names(folder):
        path = f"{folder}/{name}"
        found += _paths(disk, path) if disk.size(path) is None else [path]
    return [path for path in found if disk.size(path)]


def proxy_files(data: bytes) -> None:
    """RocketMQ's `rmq-proxy.json`."""
    with contextlib.suppress(ConfigError):
        load([ProxyConfig], file=ConfigFile("rmq-proxy.json", decode(data)))


def config_files(data: bytes) -> None:
    """Configuration files, in both forms; the first byte says which."""
    try:
        text = decode(data[1:])
    except UnicodeDecodeError:
        return  # half a character of UTF-16
    name = "sprocket.toml" if data[:1] == b"t" else "broker.conf"
    with contextlib.suppress(ConfigError):
        load(_kinds(), file=ConfigFile(name, text))


@functools.cache
def _kinds() -> Sequence[type]:
    return kinds()


DOORS = (
    tls_first_bytes, tls_handshakes, slave_streams, master_streams, certificate_files, pop_handles,
    topic_attributes, inner_batches, batch_queues, proxy_files, config_files,
)  # fmt: skip


def _client_hello() -> bytes:
    _, client = _contexts()
    back, there = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        client.wrap_bio(back, there, server_hostname="localhost").do_handshake()
    return there.read()


def _first_bytes() -> list[bytes]:
    hello = _client_hello()
    return [
        hello,
        hello[:50],
        b"\x16",
        b"\x00\x00\x00\x20{",
        hello + hello,
        b"\x80\x2e\x01\x03\x01",
    ]


def _flights() -> list[bytes]:
    return [bytes([flight, 0, at]) + b"\x00\xff" for flight in range(8) for at in (0, 3, 40)] + [
        bytes([0x81, 0, 9]) + bytes(300)
    ]


def _golden_stream(name: str) -> bytes:
    return gzip.decompress((_GOLDEN / "ha" / f"{name}.bin.gz").read_bytes())


def _slave_streams() -> list[bytes]:
    golden = _golden_stream("slave-to-master")[:512]
    hello = struct.pack(">ihhq", 1, 0, 0, 2)
    return [golden, hello + struct.pack(">iq", 2, 100) * 3, hello * 2]


def _master_streams() -> list[bytes]:
    async def log() -> bytes:
        store = await opened(MemoryDisk())
        for number in range(6):
            store.append(a_draft(b"%d" % number))
        found = bytes(store.replica.read(0, SMALL.log_file_bytes))
        await store.close()
        return found

    content = run(log())
    plain = struct.pack(">qi", 0, len(content)) + content + struct.pack(">qi", len(content), 0)
    hello = MasterHello(len(content), 1, EpochList([(1, 0)])).encode()
    frame = struct.pack(">iiqiqq", 2, len(content), 0, 1, 0, 0) + content
    return [_golden_stream("master-to-slave")[:8_192], plain, hello + frame]


def _certificates() -> list[bytes]:
    authority, config = _authority()
    assert config.certificate is not None and config.key is not None  # noqa: PT018
    certificate, key = (Path(each).read_bytes() for each in (config.certificate, config.key))
    locked = authority.issue("locked", password="x")
    found = [b"\x00" + certificate, b"\x01" + key, b"\x02" + Path(authority.path).read_bytes()]
    return [*found, b"\x03" + certificate + key, b"\x01" + Path(locked.key).read_bytes()]


def _inner_batches() -> list[bytes]:
    disk, paths = _batch_store()
    return [bytes(disk.read(path) or b"") for path in paths if "commitlog" in path]


_HANDLES = [
    b"0 1700000000000 60000 0 0 broker-a 3 17", b"1 1700000000000 60000 0 1 broker-a 3 17 99",
    b"0 0 17;0 1 18", b"1 3 17,18,19;0 2 5", b"0 2 1@0,2@3",
]  # fmt: skip
_ATTRIBUTES = [
    b"+message.type=FIFO", b"+queue.type=BatchCQ,-message.type", b"+priority.factor=50",
    b"+cleanup.policy=COMPACTION,+reserve.time=100,+lite.topic.expiration=-1",
]  # fmt: skip
_PROXY_FILES = [
    b'{"grpcServerPort": 8081, "namesrvAddr": "127.0.0.1:9876", "enableProxyAutoRenew": true}',
    b'{"rocketMQClusterName": "DefaultCluster", "proxyMode": "CLUSTER", "x": null}',
]
_CONFIG_FILES = [
    b"bbrokerName=b\nlistenPort = 10911\nflushDiskType:ASYNC_FLUSH\n# x\nbrokerRole=SLAVE\\\n",
    b"t[broker]\nname = 'b'\nport = 1\n[store]\nflush = 'SYNC_FLUSH'\n",
    b"b\xef\xbb\xbf<!-- x -->\n", b'b{"grpcServerPort": 8081}',
    b"bauditLogEnable=true\nauditLogFileSize=1MiB\n",
]  # fmt: skip

DOOR_SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "tls_first_bytes": _first_bytes,
    "tls_handshakes": _flights,
    "slave_streams": _slave_streams,
    "master_streams": _master_streams,
    "certificate_files": _certificates,
    "pop_handles": lambda: _HANDLES,
    "topic_attributes": lambda: _ATTRIBUTES,
    "inner_batches": _inner_batches,
    "batch_queues": lambda: [bytes([n, 0, n % 128]) + b"\xff" * 4 for n in range(256)],
    "proxy_files": lambda: _PROXY_FILES,
    "config_files": lambda: _CONFIG_FILES,
}
