"""Where an elector is, as a setting says it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.election.places import CONTROLLER, ETCD, ElectorPlace, elector_form, parse_place


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("etcd://a:2379", ElectorPlace(ETCD, ("a:2379",))),
        (" etcd://a:1, b:2 ;c:3/ ", ElectorPlace(ETCD, ("a:1", "b:2", "c:3"))),
        ("http://a:1,http://b:2", ElectorPlace(ETCD, ("a:1", "b:2"))),
        ("https://a:1/,https://b:2/", ElectorPlace(ETCD, ("a:1", "b:2"), "", True)),
        ("https://root@a:1,b:2", ElectorPlace(ETCD, ("a:1", "b:2"), "root", True)),
        ("etcd://[::1]:2379", ElectorPlace(ETCD, ("[::1]:2379",))),
        ("controller://a:9878;b:9878", ElectorPlace(CONTROLLER, ("a:9878", "b:9878"))),
    ],
)
def test_places(value: str, place: ElectorPlace) -> None:
    assert elector_form(value) is None
    assert parse_place(value) == place


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("", "is etcd://host:2379"),
        ("a:2379", "is etcd://host:2379"),
        ("etdc://a:1", "did you mean 'etcd'"),
        ("zookeeper://a:1", "begins with etcd://, https:// or controller://"),
        ("etcd://", "names no server"),
        ("etcd://a:1,,b:2", "names no server"),
        ("etcd://a", "host:port"),
        ("etcd://a:1,https://b:2", "host:port without a scheme"),
        ("etcd://a:99999", "port from 1 to 65535"),
        ("etcd://a:1,a:1", "names 'a:1' twice"),
        ("etcd://root:secret@a:1", "belongs into broker.elector_password"),
        ("etcd://@a:1", "no user before its @"),
        ("controller://me@a:1", "a user with etcd only"),
    ],
)
def test_what_is_no_place_is_explained(value: str, complaint: str) -> None:
    found = elector_form(value)
    assert found is not None
    assert complaint in found
    assert "secret" not in found
    with pytest.raises(ValueError, match="the elector "):
        parse_place(value)


@given(st.text())
def test_any_text_is_a_place_or_explained(value: str) -> None:
    assert elector_form(value) is None or elector_form("etcd://" + value) != ""
