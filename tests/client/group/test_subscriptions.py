from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import UsageError
from sprocket.client.group.subscriptions import Subscriptions
from sprocket.filter.choice import filter_of

ALL = filter_of("*")
PAID = filter_of("paid")
ORDERS = re.compile(r"orders-.*")


def test_topics_that_match_wholly_are_found_and_internal_ones_never() -> None:
    wanted = Subscriptions()
    wanted.set(re.compile(".*orders-(eu|us)"), PAID, None, version=1)
    names = ["orders-eu", "orders-us", "orders-us-old", "my-orders-eu", "%RETRY%orders-eu"]
    names += ["%DLQ%orders-eu", "rmq_sys_orders-eu", "TBW102"]
    assert wanted.listed(names, version=7) == (["my-orders-eu", "orders-eu", "orders-us"], [])
    assert wanted.by_topic["orders-eu"].filter == PAID
    assert wanted.by_topic["orders-eu"].version == 7
    assert wanted.listed(names, version=8) == ([], [])


def test_the_newest_subscription_counts_also_after_the_clock_was_set_back() -> None:
    wanted = Subscriptions()
    wanted.set("orders", ALL, None, version=100)
    wanted.set("orders", PAID, None, version=40)
    assert wanted.by_topic["orders"].version == 101
    wanted.drop("orders")
    wanted.set("orders", ALL, None, version=40)
    assert wanted.by_topic["orders"].version == 102
    wanted.set("orders", ALL, None, version=500)
    assert wanted.by_topic["orders"].version == 500


def test_a_topic_is_gone_only_after_it_was_missing_three_times_in_a_row() -> None:
    wanted = Subscriptions()
    wanted.set(ORDERS, ALL, None, version=1)
    wanted.listed(["orders-1", "orders-2"], version=1)
    for _ in range(2):
        assert wanted.listed(["orders-2"], version=1) == ([], [])
    assert wanted.listed(["orders-1", "orders-2"], version=1) == ([], [])
    for _ in range(2):
        assert wanted.listed([], version=1) == ([], [])
    assert wanted.listed(["orders-2"], version=1) == ([], ["orders-1"])
    assert list(wanted.by_topic) == ["orders-2"]


def test_a_topic_subscribed_by_name_stays_as_it_was_subscribed() -> None:
    wanted = Subscriptions()
    wanted.set("orders-1", PAID, None, version=1)
    wanted.set(ORDERS, ALL, None, version=1)
    assert wanted.listed(["orders-1", "orders-2"], version=2) == (["orders-2"], [])
    assert wanted.by_topic["orders-1"].filter == PAID
    wanted.set("orders-2", PAID, None, version=3)
    assert wanted.drop(ORDERS)
    assert sorted(wanted.by_topic) == ["orders-1", "orders-2"]


def test_a_pattern_that_is_dropped_takes_what_only_it_found_with_it() -> None:
    wanted = Subscriptions()
    other = re.compile("orders-2")
    wanted.set(ORDERS, ALL, None, version=1)
    wanted.set(other, ALL, None, version=1)
    wanted.listed(["orders-1", "orders-2"], version=1)
    assert wanted.drop(ORDERS)
    assert not wanted.drop(ORDERS)
    assert list(wanted.by_topic) == ["orders-2"]
    assert not wanted.drop("unknown")
    wanted.clear()
    assert wanted.is_empty


def test_what_can_name_no_topic_is_refused() -> None:
    wanted = Subscriptions()
    with pytest.raises(UsageError):
        wanted.set("no topic!", ALL, None, version=1)
    with pytest.raises(UsageError, match="text"):
        wanted.set(re.compile(b"orders"), ALL, None, version=1)  # type: ignore[arg-type]
    wanted.set(re.compile(".*"), ALL, None, version=1)
    with pytest.raises(UsageError, match="10000"):
        wanted.listed([f"t{number}" for number in range(10_001)], version=1)


names = st.sets(st.sampled_from(["orders-1", "orders-2", "orders-3", "news"]))


@given(st.lists(names, max_size=12))
def test_what_is_subscribed_was_listed_in_one_of_the_last_three_lists(
    lists: list[set[str]],
) -> None:
    wanted = Subscriptions()
    wanted.set(ORDERS, ALL, None, version=1)
    for number, each in enumerate(lists):
        wanted.listed(each, version=1)
        recent = set().union(*lists[max(0, number - 2) : number + 1])
        assert set(wanted.by_topic) == {topic for topic in recent if topic != "news"}
