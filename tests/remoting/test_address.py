"""Addresses as text."""

from __future__ import annotations

import pytest

from sprocket.base.errors import ConnectFailed
from sprocket.remoting import address


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("127.0.0.1:9876", ("127.0.0.1", 9876)),
        ("broker.example:10911", ("broker.example", 10911)),
        ("[::1]:9876", ("::1", 9876)),
        ("::1:9876", ("::1", 9876)),
        (" 10.0.0.1:1 ", ("10.0.0.1", 1)),
    ],
)
def test_host_and_port_are_taken_apart(text: str, parts: tuple[str, int]) -> None:
    assert address.split(text) == parts


@pytest.mark.parametrize("host", ["::1", "[::1]", " [::1] "])
def test_an_address_of_ipv6_may_stand_in_brackets(host: str) -> None:
    assert address.bare(host) == "::1"
    assert address.join(host, 9876) == "[::1]:9876"


@pytest.mark.parametrize(
    "text", ["", "host", "host:", ":1", "host:x", "host:0", "host:70000", "h:²"]
)
def test_nobody_is_reached_at_nonsense(text: str) -> None:
    with pytest.raises(ConnectFailed, match="not an address"):
        address.split(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (("127.0.0.1", 1), "127.0.0.1:1"),
        (("::1", 1, 0, 0), "[::1]:1"),
        (("fe80::1%eth0", 1, 0, 2), "[fe80::1]:1"),
        (("::ffff:10.0.0.1", 1, 0, 0), "10.0.0.1:1"),
        (None, ""),
        ("/a/path", ""),
    ],
)
def test_socket_names_become_text(name: object, text: str) -> None:
    assert address.of_socket(name) == text
