"""Packed addresses."""

from __future__ import annotations

import pytest

from sprocket.base.errors import UsageError
from sprocket.message.hosts import pack, unpack


@pytest.mark.parametrize(
    ("text", "packed"),
    [
        ("127.0.0.1:10911", "7f00000100002a9f"),
        ("0.0.0.0:0", "0000000000000000"),
        ("255.255.255.255:65535", "ffffffff0000ffff"),
        ("[::1]:10911", "0000000000000000000000000000000100002a9f"),
        ("[2001:db8::1]:40000", "20010db800000000000000000000000100009c40"),
    ],
)
def test_an_address_packs_and_unpacks(text: str, packed: str) -> None:
    assert pack(text).hex() == packed
    assert unpack(bytes.fromhex(packed)) == text


@pytest.mark.parametrize("text", ["::1:10911", "[::1%eth0]:10911", "[0:0:0:0:0:0:0:1]:10911"])
def test_ipv6_is_read_without_brackets_with_a_zone_and_in_long_form(text: str) -> None:
    assert unpack(pack(text)) == "[::1]:10911"


def test_an_ipv4_address_written_as_ipv6_is_ipv4() -> None:
    assert pack("[::ffff:10.0.0.7]:80") == pack("10.0.0.7:80")


@pytest.mark.parametrize(
    "text", ["", "10911", "localhost:10911", "1.2.3:4", "1.2.3.4:", "1.2.3.4:x", "1.2.3.4:65536"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        pack(text)


@pytest.mark.parametrize("size", [0, 7, 9, 19, 21])
def test_other_sizes_do_not_unpack(size: int) -> None:
    with pytest.raises(UsageError):
        unpack(bytes(size))
