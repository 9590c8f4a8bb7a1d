"""What texts of settings must look like."""

from __future__ import annotations

import pytest

from sprocket.base import setting_forms as forms


@pytest.mark.parametrize(
    "value",
    ["127.0.0.1:9876", "n-1.example.com:1", "mq_ns:65535", "[::1]:9876", "::1:9876", " a:1 "],
)
def test_an_address_is_a_host_and_a_port(value: str) -> None:
    assert forms.address(value) is None


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("127.0.0.1", "is host:port, so perhaps '127.0.0.1:9876', not '127.0.0.1'"),
        ("http://n:9876/", "is host:port without a scheme, so perhaps 'n:9876', not"),
        ('"n:9876"', "is written without quotes"),
        ("n:0", "a port from 1 to 65535"),
        ("n:65536", "a port from 1 to 65535"),
        ("n:\u0661", "a port from 1 to 65535"),
        ("n:Port", "a port from 1 to 65535"),
        ("300.1.1.1:9876", "is host:port, not"),
        ("a b:9876", "is host:port, not"),
        (":9876", "is host:port, not"),
        ("n/x:1", "is host:port, not"),
    ],
)
def test_what_is_no_address_is_told_why(value: str, complaint: str) -> None:
    assert complaint in str(forms.address(value))
    assert forms.addresses(("a:1", value)) == forms.address(value)


@pytest.mark.parametrize("value", ["", "0.0.0.0", "::", "[::]", "::1", "broker_a", "10.0.0.7"])
def test_a_host_is_an_address_or_a_name(value: str) -> None:
    assert forms.host(value) is None


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("10.0.0.7:10911", "is a host without a port"),
        ("tcp://10.0.0.7", "is a host without a scheme"),
        ("'10.0.0.7'", "without quotes"),
        ("10.0.0.300", "is an IP address or the name of a host"),
        ("change me", "is an IP address or the name of a host"),
    ],
)
def test_what_is_no_host_is_told_why(value: str, complaint: str) -> None:
    assert complaint in str(forms.host(value))


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("~/store", "neither RocketMQ nor this reads ~ as home"),
        ("${user.home}/store", "no variables are filled in"),
        ("$HOME/store", "no variables are filled in"),
        ('"/data"', "without quotes"),
        (" ", "needs the path of a folder"),
        ("/a\x00b", "without control characters"),
    ],
)
def test_what_is_no_folder_is_told_why(value: str, complaint: str) -> None:
    assert complaint in str(forms.folder(value))
    assert complaint in str(forms.folders(("/a", value)))
    assert forms.folders(("/a", "b/c", "/usr/local/store~1")) is None


def test_names_networks_hours_delays_and_sizes() -> None:
    assert forms.name("broker-a") is None
    assert "without blanks" in str(forms.name("a\tb"))
    assert "needs a name" in str(forms.name(""))
    assert forms.networks(("10.0.0.0/8", "::1")) is None
    assert "networks such as" in str(forms.networks(("10.0.0.0/33",)))
    assert forms.hours("04;16, 23") is None
    assert "hours from 00 to 23" in str(forms.hours("24"))
    assert forms.delays("1s 5m") is None
    assert "not '5x'" in str(forms.delays("1s 5x"))
    assert "at least one" in str(forms.delays(" "))
    assert "perhaps 1020, not 1001" in str(forms.whole_entries(1001))
