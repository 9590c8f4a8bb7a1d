"""What is fuzzed: functions of bytes, which may refuse them in their own words and in no other way.

Each target raises nothing but what its docstring allows; anything else that comes out of one is a
finding. `seeds` gives inputs that get deep at once: golden bytes, and small stores made here.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sprocket.base.errors import (
    CorruptRecord,
    ProtocolError,
    StoreError,
    SubscriptionInvalid,
    UsageError,
)
from sprocket.filter.sql92 import SqlFilter
from sprocket.filter.tags import TagFilter
from sprocket.message import batch, hosts, ids, properties, record
from sprocket.message.compression import Compression, compress, open_body
from sprocket.message.opening import Opening
from sprocket.message.recall import RecallHandle
from sprocket.protocol.bodies.body import Body
from sprocket.protocol.command import Reply
from sprocket.protocol.connection import Connection
from sprocket.protocol.frame import encode_reply
from sprocket.protocol.requests.send import SendMessage
from sprocket.protocol.requests.table import REQUESTS
from sprocket.proxy.http2 import frames as wire
from sprocket.proxy.http2.call_form import call_form
from sprocket.proxy.http2.field_decoder import FieldDecoder
from sprocket.proxy.http2.messages_in import MessageReader
from sprocket.proxy.http2.status import GrpcError
from sprocket.store.config import StoreConfig
from sprocket.store.state.checkpoint import marks_in
from sprocket.store.state.snapshot import Snapshot
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import MemoryDisk
from tests.fuzz.accounts import ACCOUNT_SEEDS, ACCOUNTS
from tests.fuzz.doors import DOOR_SEEDS, DOORS
from tests.fuzz.loop import run
from tests.fuzz.rights import RIGHTS, RIGHTS_SEEDS
from tests.fuzz.views import VIEW_SEEDS, VIEWS
from tests.proxy.http2 import kit
from tests.proxy.http2.kit import HELLO, Recorder, block, headers_frame, request_headers

Target = Callable[[bytes], None]

_GOLDEN = Path(__file__).parent.parent / "golden"
_ROOT = "/store"
_HOST = hosts.pack("127.0.0.1:10911")
_SMALL = StoreConfig(log_file_bytes=4096, queue_file_bytes=160, index_slots=8, index_entries=32)
_BODY_BYTES_MAX = 1 << 20
_GRPC_BYTES_MAX = 1 << 12
_GRPC_HEADERS_BYTES_MAX = 1 << 14


def frames(data: bytes) -> None:
    """A connection's bytes: commands, their headers typed, an answer to each.

    However they are cut, the same commands come.
    """
    whole, cut = Connection(), Connection()
    commands = list(_received(whole, [data]))
    middle = len(data) // 2
    pieces = list(_received(cut, [data[:middle], data[middle:]]))
    assert [c.code for c in commands] == [c.code for c in pieces]
    for command in commands:
        with contextlib.suppress(ProtocolError):
            assert isinstance(command.fields, dict)
        with contextlib.suppress(ProtocolError):
            command.read(REQUESTS.get(command.code, SendMessage))
        encode_reply(command, Reply())


def _received(connection: Connection, pieces: list[bytes]) -> Iterator[Any]:
    with contextlib.suppress(ProtocolError):
        for piece in pieces:
            yield from connection.receive(piece)


def bodies(data: bytes) -> None:
    """JSON bodies of requests, in both dialects."""
    for body in Body.__subclasses__():
        with contextlib.suppress(ProtocolError):
            body.decode(data)


def batches(data: bytes) -> None:
    """Many messages in one body: what is taken apart comes to the same when put together."""
    with contextlib.suppress(ProtocolError):
        parts = batch.decode(data)
        assert [p.body for p in batch.decode(batch.encode(parts))] == [p.body for p in parts]


def records(data: bytes) -> None:
    """Records one after the other, as in the log and in the answer to a pull."""
    with contextlib.suppress(CorruptRecord):
        for message in record.scan(data, "b", opening=Opening()):
            assert message.record_bytes > 0
    with contextlib.suppress(CorruptRecord):
        record.parse(data)


def compressed(data: bytes) -> None:
    """A body behind its kind (one byte): opened within its limit or refused."""
    for kind in Compression:
        with contextlib.suppress(CorruptRecord):
            assert len(open_body(data, kind.sys_flag, _BODY_BYTES_MAX)) <= _BODY_BYTES_MAX


def small_texts(data: bytes) -> None:
    """Properties, ids, addresses, handles."""
    found = properties.decode_bytes(data)
    assert properties.decode(properties.encode(found)) == found
    for name in found:
        properties.value_in(data, name)
    text = data.decode("utf-8", "replace")
    for parse in (ids.parse_unique_id, ids.parse_offset_id, RecallHandle.parse, hosts.pack):
        with contextlib.suppress(ProtocolError, UsageError, CorruptRecord):
            parse(text)


def filters(data: bytes) -> None:
    """Expressions of subscribers: refused, or a filter that judges any message."""
    text = data.decode("utf-8", "replace")
    for language in (TagFilter, SqlFilter):
        with contextlib.suppress(SubscriptionInvalid, UsageError, ProtocolError):
            language.parse(text).matches({"a": "1", "b": text})


def states(data: bytes) -> None:
    """A state file: read, refused with its name, or made up for by its backup."""
    disk = MemoryDisk()
    disk.make_directory(_ROOT)
    disk.replace(f"{_ROOT}/topics.json", data)
    with contextlib.suppress(StoreError):
        Snapshot(disk, f"{_ROOT}/topics.json").load()
    marks_in(data)


def stores(data: bytes) -> None:
    """A store of which a piece was overwritten: opened or refused, read or refused.

    What a reader gets then is no matter here: a queue's entries carry no checksum, and who doubts
    them has `sprocket store verify`.

    The first byte chooses the file and, by its highest bit, whether the store was killed; the next
    two say the place; the rest lies there.
    """
    if len(data) < 4:
        return
    disk, paths = a_store()
    if data[0] & 0x80:
        disk.replace(f"{_ROOT}/abort", b"")
    path = paths[(data[0] & 0x7F) % len(paths)]
    content = bytearray(disk.read(path) or b"")
    at = int.from_bytes(data[1:3], "big") % (len(content) + 1)
    room = len(content) - at
    content[at : at + len(data) - 3] = data[3 : 3 + room]
    disk.replace(path, bytes(content), backup=False)
    with contextlib.suppress(StoreError, UsageError):
        run(_read_all(disk))


async def _read_all(disk: MemoryDisk) -> None:
    store = await Store.open(
        disk=disk,
        clock=ManualClock(),
        root=_ROOT,
        config=_SMALL,
        store_host=_HOST,
        tag_codes=TAGS_ONLY,
    )
    try:
        for topic, numbers in store.queues().items():
            for number in numbers:
                _read_queue(store, topic, number)
    finally:
        await store.close()


def _read_queue(store: Store, topic: str, number: int) -> None:
    offset = int(store.min_offset(topic, number))
    for _ in range(64):
        if offset >= store.max_offset(topic, number):
            return
        found = store.read(topic, number, offset, count_max=4, bytes_max=1 << 16)
        for part in found.parts:
            for message in record.scan(part):
                assert message.record_bytes > 0
        assert found.next_offset > offset
        offset = int(found.next_offset)


def a_store() -> tuple[MemoryDisk, list[str]]:
    """A copy of a small store that was closed, and the files in it."""
    made, paths = _made_store()
    return made.after_kill(), paths


@functools.cache
def _made_store() -> tuple[MemoryDisk, list[str]]:
    disk = MemoryDisk()
    run(_fill(disk))
    return disk, _files(disk)


async def _fill(disk: MemoryDisk) -> None:
    store = await Store.open(
        disk=disk,
        clock=ManualClock(),
        root=_ROOT,
        config=_SMALL,
        store_host=_HOST,
        tag_codes=TAGS_ONLY,
    )
    for number in range(30):
        draft = record.Draft(
            topic=f"t{number % 2}", queue_number=number % 3, body=b"body %d" % number,
            properties=b"TAGS\x01a\x02KEYS\x01k%d\x02" % number, tag_code=97, flag=0, sys_flag=0,
            born_ms=number, born_host=_HOST, keys=f"k{number}",
        )  # fmt: skip
        store.append(draft)
    await store.close()


def _files(disk: MemoryDisk, folder: str = _ROOT) -> list[str]:
    found = []
    for name in sorted(disk.names(folder)):
        path = f"{folder}/{name}"
        if disk.size(path) is None:
            found += _files(disk, path)
        elif disk.size(path):
            found.append(path)
    return found


def grpc_connections(data: bytes) -> None:
    """A client's bytes at a gRPC server, after a good beginning or from the start.

    However they are cut, the same replies come.
    """
    data = data[:_GRPC_BYTES_MAX]
    for begin in (b"", HELLO):
        whole, cut = Recorder(), Recorder()
        assert whole.feed(begin + data) == cut.feed(begin + data, max(7, len(data) // 40))
        assert whole.seen == cut.seen
        assert whole.http.fault == cut.http.fault


def grpc_headers(data: bytes) -> None:
    """Header blocks, one after the other: what they say of a request and of its call."""
    decoder = FieldDecoder(_GRPC_HEADERS_BYTES_MAX)
    with contextlib.suppress(ProtocolError):
        for block in data.split(b"\n"):
            headers = decoder.decode(block)
            if headers is not None and headers.fault is None:
                call_form(headers, {})


def grpc_messages(data: bytes) -> None:
    """The messages of a request, packed or not."""
    reader, cut = (MessageReader("gzip", _BODY_BYTES_MAX) for _ in range(2))
    with contextlib.suppress(GrpcError):
        found = reader.receive(data)
        pieces = [each for at in range(len(data)) for each in cut.receive(data[at : at + 1])]
        assert found == pieces
        for each in found:
            reader.content(each)


TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        frames,
        bodies,
        batches,
        records,
        compressed,
        small_texts,
        filters,
        states,
        stores,
        grpc_connections,
        grpc_headers,
        grpc_messages,
        *DOORS,
        *ACCOUNTS,
        *RIGHTS,
        *VIEWS,
    )
}


@functools.cache
def seeds(name: str) -> list[bytes]:
    """Inputs to begin with."""
    return [seed for seed in _SEEDS[name]() if seed][:400]


def _frames() -> list[bytes]:
    """Recorded frames, one of each code and direction."""
    found: dict[object, bytes] = {}
    for path in sorted((_GOLDEN / "frames").rglob("*.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            row = json.loads(line)
            if "hex" in row and len(row["hex"]) < 8192:
                kind = row.get("code"), row["dir"], row.get("serialize")
                found.setdefault(kind, bytes.fromhex(row["hex"]))
    return list(found.values())


def _grpc() -> list[bytes]:
    """Calls, and frames of each kind."""
    whole = headers_frame(1) + wire.frame(wire.DATA, 1, 1, kit.message(b"hello"))
    packed = headers_frame(3, flags=0) + wire.frame(wire.CONTINUATION, 4, 3, b"")
    others = [wire.frame(kind, 0, 1, bytes(8)) for kind in range(10)]
    return [whole, packed, *others, wire.settings_frame({4: 10, 5: 20_000}), whole + packed]


def _log() -> list[bytes]:
    disk, paths = a_store()
    return [disk.read(path) or b"" for path in paths if "commitlog" in path]


_EXPRESSIONS = [
    b"a > 1 AND b LIKE 'x%'", b"a BETWEEN 1 AND 2 OR NOT b IN ('x', 'y')", b"c IS NULL",
    b"a || b || c", b"*", b"a CONTAINS 'x' AND TRUE",
]  # fmt: skip
_TEXTS = [
    b"TAGS\x01a\x02KEYS\x01k\x02", b"7F0000010002A9F0000000000001AABB", b"127.0.0.1:10911",
    b"[::1]:10911", b"djEgdG9waWMgYnJva2VyIDEgaWQ=",
]  # fmt: skip
_STATES = [b'{"offsetTable":{"T@G":{0:17,1:20}}}', b'{"a":[1,2,{"b":null}]}', bytes(4096)]
_BODIES = [
    b'{"clientID":"c","producerDataSet":[{"groupName":"g"}],"consumerDataSet":[]}',
    b'{"queueDatas":[],"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:1"},"brokerName":"b"}]}',
]

_SEEDS: dict[str, Callable[[], list[bytes]]] = {
    "frames": _frames,
    "bodies": lambda: _BODIES,
    "batches": lambda: [batch.encode([batch.BatchedMessage(0, b"x", "a\x01b\x02")] * 3)],
    "records": _log,
    "compressed": lambda: [compress(b"body " * 50, kind) for kind in Compression],
    "small_texts": lambda: _TEXTS,
    "filters": lambda: _EXPRESSIONS,
    "states": lambda: _STATES,
    "grpc_connections": _grpc,
    "grpc_headers": lambda: [block(request_headers(grpc_timeout="3S")), b"\x82\n\xbe\n\x3f\x00"],
    "grpc_messages": lambda: [kit.message(b"x"), kit.message(gzip.compress(b"y"), 1)],
    "stores": lambda: [bytes([n, 0, n % 128]) + b"\xff" * 4 for n in range(256)],
    **DOOR_SEEDS,
    **ACCOUNT_SEEDS,
    **RIGHTS_SEEDS,
    **VIEW_SEEDS,
}
