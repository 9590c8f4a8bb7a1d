"""White addresses of RocketMQ 4.x stand for the addresses that its own module lets pass."""

import json
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.auth.plain_addresses import EVERYWHERE, joined, white_networks
from sprocket.base.errors import UsageError
from tests.compat.plain_acl_cases import ADDRESSES, FROM, GOLDEN, REFUSED

RECORDED = dict(json.loads((GOLDEN / "addresses.json").read_text()))


def passing(white: str) -> list[str]:
    networks = [ip_network(each) for each in white_networks(white)]
    return [each for each in FROM if any(ip_address(each) in network for network in networks)]


@pytest.mark.parametrize("white", ADDRESSES)
def test_an_address_lets_those_pass_that_rocketmq_lets_pass(white: str) -> None:
    assert passing(white) == RECORDED[white]


@pytest.mark.parametrize("white", REFUSED)
def test_what_rocketmq_cannot_use_is_refused(white: str) -> None:
    assert not RECORDED[white]
    with pytest.raises(UsageError):
        white_networks(white)


@given(st.text(alphabet="0123456789abcfz.:*-{}, %/", max_size=40))
def test_any_text_is_networks_or_a_fault(text: str) -> None:
    try:
        found = white_networks(text)
    except UsageError:
        return
    assert joined(found) == found
    for each in found:
        ip_network(each)


def test_all_addresses_are_two_networks() -> None:
    assert white_networks("*") == EVERYWHERE
    assert joined(["10.0.0.1", *EVERYWHERE]) == EVERYWHERE


def test_neighbours_become_one_network() -> None:
    assert white_networks("10.0.0.{4,5,6,7}") == ("10.0.0.4/30",)
