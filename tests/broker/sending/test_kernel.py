"""The native kernel writes and replies what the broker does without it, byte by byte."""

from __future__ import annotations

import asyncio
import json
import logging
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sprocket.broker.sending import kernel
from sprocket.protocol.requests.topic import CreateTopic
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.network import Network
from tests import kernel as building
from tests.broker.parts import Asker, play

_PREFIX = struct.Struct(">ii")
_MARK = "UNIQ_KEY\x01"


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(building.built()))


def frame(header: dict[str, Any] | str, body: bytes = b"x") -> bytes:
    text = header if isinstance(header, str) else json.dumps(header, separators=(",", ":"))
    raw = text.encode()
    return _PREFIX.pack(4 + len(raw) + len(body), len(raw)) + raw + body


def send(number: int = 1, body: bytes = b"x", **more: Any) -> bytes:
    """A send as Java's client writes it, or with other fields or header values."""
    fields = {
        "a": "p", "b": "T", "c": "TBW102", "d": "4", "e": str(number % 2), "f": "0", "g": "17",
        "h": "0", "i": f"{_MARK}K{number}\x02WAIT\x01true\x02TAGS\x01paid\x02", "j": "0",
        "k": "false", "m": "false", "n": "b",
    }  # fmt: skip
    header = {
        "code": 310, "extFields": fields, "flag": 0, "language": "JAVA", "opaque": number,
        "serializeTypeCurrentRPC": "JSON", "version": 479,
    }  # fmt: skip
    for name, value in more.items():
        if value is None:
            (fields if len(name) == 1 else header).pop(name)
        elif len(name) == 1:
            fields[name] = value
        else:
            header[name] = value
    return frame(header, body)


def with_properties(text: str, **more: Any) -> bytes:
    return send(i=text, **more)


#: Each is taken by the kernel or left to the broker, for its own reason.
ODD = {
    "no tag": with_properties(f"{_MARK}K\x02"),
    "no end": with_properties(f"{_MARK}K\x02TAGS\x01t"),
    "keys": with_properties(f"KEYS\x01a b  a c\x02{_MARK}K\x02"),
    "keys that are the unique one": with_properties(f"KEYS\x01K\x02{_MARK}K\x02"),
    "keys with a tab": with_properties(f"KEYS\x01a\tb\x02{_MARK}K\x02"),
    "escapes": with_properties(f'a"\\/\b\f\n\r\t\x01"\\/\b\f\n\r\t\x02{_MARK}K\x02'),
    "a control character": with_properties(f"a\x01\x03\x7f\x00\x02{_MARK}K\x02"),
    "no unique key": with_properties("TAGS\x01t\x02"),
    "an empty unique key": with_properties(f"{_MARK}\x02"),
    "a unique key to quote": with_properties(f'{_MARK}a"b\\c\x02'),
    "a unique key with a blank": with_properties(f"{_MARK}a b\x02"),
    "a repeated name": with_properties(f"a\x01b\x02{_MARK}K\x02a\x01c\x02"),
    "two unique keys": with_properties(f"{_MARK}K\x02{_MARK}L\x02"),
    "an empty value": with_properties(f"a\x01\x02{_MARK}K\x02"),
    "an empty name": with_properties(f"\x01a\x02{_MARK}K\x02"),
    "a piece without separator": with_properties(f"a\x02{_MARK}K\x02"),
    "two separators": with_properties(f"a\x01b\x01c\x02{_MARK}K\x02"),
    "umlauts": with_properties(f"ä\x01ö\x02{_MARK}K\x02"),
    "an umlaut as tag": with_properties(f"TAGS\x01ä\x02{_MARK}K\x02"),
    "a lone surrogate": with_properties(f"a\x01\ud800\x02{_MARK}K\x02"),
    "a delay": with_properties(f"DELAY\x012\x02{_MARK}K\x02"),
    "a delivery time": with_properties(f"TIMER_DELIVER_MS\x0199\x02{_MARK}K\x02"),
    "a transaction": with_properties(f"TRAN_MSG\x01true\x02PGROUP\x01p\x02{_MARK}K\x02"),
    "the broker's own": with_properties(f"MSG_REGION\x01x\x02{_MARK}K\x02"),
    "brokers' own": with_properties(f"REAL_TOPIC\x01x\x02{_MARK}K\x02"),
    "a priority": with_properties(f"_SYS_MSG_PRIORITY_\x011\x02{_MARK}K\x02"),
    "many pairs": with_properties("".join(f"a{n}\x01b\x02" for n in range(40)) + f"{_MARK}K\x02"),
    "long properties": with_properties(f"a\x01{'b' * 5000}\x02{_MARK}K\x02"),
    "another queue": send(e="9"),
    "any queue": send(e="-1"),
    "a queue as a number": send(e=1),
    "a queue with a zero": send(e="01"),
    "a queue with a plus": send(e="+1"),
    "no queue": send(e=None),
    "no topic": send(b=None),
    "another topic": send(b="Elsewhere"),
    "an unknown topic": send(b="Unknown"),
    "a closed topic": send(b="SCHEDULE_TOPIC_XXXX"),
    "a retry topic": send(b="%RETRY%g"),
    "an ordered topic": send(b="Ordered"),
    "a read-only topic": send(b="ReadOnly"),
    "no properties": send(i=None),
    "null properties": frame(send(i=None)[8:-1].decode().replace('"k"', '"i":null,"k"')),
    "no flags": send(f=None, g=None, h=None, j=None, k=None, m=None),
    "a batch": send(m="true"),
    "a unit": send(k="true"),
    "flags": send(f="3", h="7", j="2", l="16"),
    "a flag of transactions": send(f="4"),
    "all flags": send(f="-1"),
    "a huge flag": send(f="2147483647"),
    "too large a flag": send(f="2147483648"),
    "a huge time": send(g="9223372036854775807"),
    "a negative time": send(g="-1"),
    "-0": send(g="-0"),
    "an unknown field": send(z="1"),
    "a long field": send(more="1"),
    "signed": send(AccessKey="k"),
    "an empty body": send(body=b""),
    "a large body": send(body=b"y" * 5000),
    "too large a body": send(body=b"y" * 5_000_000),
    "one way": send(flag=2),
    "a reply": send(flag=1),
    "more flags": send(flag=4),
    "a negative opaque": send(opaque=-7),
    "an opaque as a text": send(opaque="7"),
    "a huge opaque": send(opaque=2**31),
    "no opaque": send(opaque=None),
    "a remark": send(remark="hello"),
    "another language": send(language="PYTHON"),
    "no version": send(version=None),
    "the long form": send(code=10),
    "another code": send(code=35),
    "a code as a text": send(code="310"),
    "blanks": frame(json.dumps(json.loads(send()[8:-1]))),
    "a header that is cut": frame('{"code":310,"extFields":{"b":"T"'),
    "a header with more behind": frame(send()[8:-1].decode() + " "),
    "fastjson's dialect": frame(send()[8:-1].decode().replace('"code"', "code")),
    "a field twice": frame(send()[8:-1].decode().replace('"e":"1"', '"e":"0","e":"1"')),
    "a code twice": frame(send()[8:-1].decode().replace('"flag"', '"code":10,"flag"')),
    "a binary header": b"\0\0\0\x1a\x01\0\0\x15" + bytes(21) + b"x",
}  # fmt: skip

SENDS = st.one_of(st.integers(0, 9).map(send), st.sampled_from(list(ODD.values())))
#: The kernel makes no queue, so its first message is left to the broker.
FIRST = [send(8) + send(9)]


@dataclass(frozen=True)
class Outcome:
    """What a broker replied, and everything it has on its disk."""

    replies: bytes
    files: dict[str, bytes]
    used: int


@dataclass(frozen=True)
class Hosts:
    """Where the broker listens, and from which address a sender is seen."""

    broker: str = "127.0.0.1"
    sender: str = "127.0.0.1"


def outcome(pieces: Sequence[bytes], *, native: bool, hosts: Hosts) -> Outcome:
    """What a broker makes of bytes that come in these pieces."""
    disk, used = MemoryDisk(), 0
    take = kernel.KernelSends.take

    def counted(self: Any, data: bytes, peer: Any) -> Any:
        nonlocal used
        stored = take(self, data, peer) if native else None
        used += 0 if stored is None else stored.messages
        return stored

    async def test(asker: Asker) -> bytes:
        for topic in ("T", "Elsewhere"):
            await asker.create(topic, 2)
        await asker.create("ReadOnly", 2, permission=4)
        ordered = CreateTopic(
            topic="Ordered", default_topic="TBW102", read_queue_nums=2, write_queue_nums=2, perm=6,
            topic_filter_type="SINGLE_TAG", order=True,
        )  # fmt: skip
        await asker.code(ordered)
        host, port = asker.broker.address.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.01)
        await asyncio.sleep(1)
        writer.close()
        return await reader.read()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel.KernelSends, "take", counted)
        patch.setattr(Network, "_place", lambda _, host, seen_by, port: (hosts.sender, port))
        replies = play(test, disk, host=hosts.broker)
    files = {path: file.content() for path, file in disk._files.items() if "lock" not in path}
    return Outcome(replies, files, used)


def check(pieces: Sequence[bytes], hosts: Hosts | None = None) -> int:
    """Both ways give the same; how many messages the kernel took."""
    hosts = hosts or Hosts()
    logging.disable(logging.CRITICAL)
    try:
        with_kernel = outcome(pieces, native=True, hosts=hosts)
        without = outcome(pieces, native=False, hosts=hosts)
    finally:
        logging.disable(logging.NOTSET)
    assert with_kernel.replies == without.replies
    assert with_kernel.files == without.files
    return with_kernel.used


def test_what_clients_send_is_taken() -> None:
    frames = [send(n, b"body %d" % n) for n in range(150)]
    assert check([*FIRST, b"".join(frames[:50]), b"".join(frames[50:])]) == len(frames)


@pytest.mark.parametrize(
    "hosts",
    [
        Hosts("::1", "2001:db8::7"),
        Hosts("::1"),
        Hosts(sender="fe80::1"),
        Hosts(sender="::ffff:1.2.3.4"),
    ],
    ids=str,
)
def test_addresses_may_be_those_of_ipv6(hosts: Hosts) -> None:
    frames = [send(n, b"body %d" % n) for n in range(50)]
    odd = send(f="3", h="7", j="2") + ODD["all flags"] + ODD["a delay"]
    assert check([*FIRST, b"".join(frames[:25]), odd, b"".join(frames[25:])], hosts) >= 50


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_stored_or_refused_as_ever(name: str) -> None:
    assert check([*FIRST, send(1) + ODD[name] + send(2), send(3)]) >= 1


def test_frames_that_are_cut_are_taken_all_the_same() -> None:
    frames = b"".join(send(n) for n in range(100))
    pieces = [frames[at : at + 777] for at in range(0, len(frames), 777)]
    assert check([*FIRST, *pieces]) > 90


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    st.lists(SENDS, max_size=30),
    st.lists(st.integers(1, 5000), max_size=12),
)
@example([ODD["a binary header"], send(1)], [30])
def test_any_mixture_in_any_pieces_is_taken_alike(frames: list[bytes], cuts: list[int]) -> None:
    rest, pieces = b"".join(frames), list[bytes]()
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    check([*FIRST, *(piece for piece in (*pieces, rest) if piece)])


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_changed_bytes_mean_the_same_to_both(data: st.DataObject) -> None:
    raw = bytearray(send(1) + send(2))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    check([*FIRST, bytes(raw), send(3)])
