"""The table of consumer groups."""

from __future__ import annotations

import pytest

from sprocket.base.errors import InvalidParameter, SystemBusy
from sprocket.broker.config import BrokerConfig
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.groups import OWN_GROUPS, Groups
from sprocket.protocol.bodies import GroupConfig
from sprocket.store.config import StoreConfig
from sprocket.testing.clock import ManualClock


def table(changes: list[str] | None = None, **settings: object) -> Groups:
    config = BrokerConfig(**settings)  # type: ignore[arg-type]
    on_change = [].append if changes is None else changes.append
    return Groups(BrokerSettings(config, StoreConfig()), clock=ManualClock(), on_change=on_change)


def test_an_unknown_group_is_made_when_it_shows_up() -> None:
    changes: list[str] = []
    groups = table(changes)
    made = groups.find("g")
    assert made is not None
    assert (made.retry_max_times, made.retry_queue_nums) == (16, 1)
    assert groups.find("g") is made
    assert changes == ["g"]
    assert groups.find("bad name!") is None


def test_with_automatic_creation_off_only_rocketmqs_own_groups_are_made() -> None:
    groups = table(auto_create_groups=False)
    assert groups.find("g") is None
    assert groups.find("CID_RMQ_SYS_x") is not None
    assert all(groups.find(name) for name in OWN_GROUPS)


def test_operators_make_change_and_remove_groups() -> None:
    groups = table()
    groups.put(GroupConfig(group_name="g", retry_max_times=3))
    found = groups.get("g")
    assert found is not None
    assert found.retry_max_times == 3
    for bad in (GroupConfig(), GroupConfig(group_name="g", retry_queue_nums=-1)):
        with pytest.raises(InvalidParameter):
            groups.put(bad)
    assert groups.remove("g")
    assert not groups.remove("g")


def test_a_group_can_be_kept_from_single_topics() -> None:
    groups = table()
    groups.forbid("g", "T", readable=False)
    assert groups.is_forbidden("g", "T")
    assert not groups.is_forbidden("g", "U")
    groups.forbid("g", "T", readable=True)
    groups.forbid("g", "U", readable=True)
    assert not groups.is_forbidden("g", "T")
    assert groups.forbidden == {}


def test_the_number_of_groups_is_bounded() -> None:
    groups = table(groups_max=32)
    for number in range(32 - len(OWN_GROUPS)):
        groups.find(f"g{number}")
    with pytest.raises(SystemBusy):
        groups.find("one-more")


def test_saved_and_loaded_it_is_the_same() -> None:
    groups = table()
    groups.put(GroupConfig(group_name="g", consume_enable=False))
    groups.forbid("g", "T", readable=False)
    again = table()
    again.load(groups.to_json())
    assert again.to_json() == groups.to_json()
    assert again.is_forbidden("g", "T")
