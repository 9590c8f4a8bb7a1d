"""Resources in RocketMQ's texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.auth.resources import EVERYTHING, Resource, ResourceKind, ResourcePattern
from sprocket.base.errors import UsageError


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("*", EVERYTHING),
        ("Topic:orders", ResourcePattern(ResourceKind.TOPIC, "orders", False)),
        ("topic:orders", ResourcePattern(ResourceKind.TOPIC, "orders", False)),
        ("Group:a%b-*", ResourcePattern(ResourceKind.GROUP, "a%b-", True)),
        ("Cluster:*", ResourcePattern(ResourceKind.CLUSTER, "", True)),
        ("Topic:a:b", ResourcePattern(ResourceKind.TOPIC, "a:b", False)),
    ],
)
def test_a_text_names_a_pattern(text: str, pattern: ResourcePattern) -> None:
    assert ResourcePattern.parse(text) == pattern


@pytest.mark.parametrize("text", ["", "orders", "Topic:", "Queue:a", "Topic:a*b", "Topic:**", ":a"])
def test_what_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="a resource is Cluster:NAME"):
        ResourcePattern.parse(text)


@given(st.sampled_from(ResourceKind), st.text("ab:%-_", max_size=6), st.booleans())
def test_a_pattern_reads_back_as_it_was_written(
    kind: ResourceKind, name: str, is_prefix: bool
) -> None:
    pattern = ResourcePattern(kind, name, is_prefix or not name)
    assert ResourcePattern.parse(str(pattern)) == pattern


def test_a_resource_is_shown_as_in_a_policy() -> None:
    assert str(Resource(ResourceKind.TOPIC, "orders")) == "Topic:orders"
    assert str(EVERYTHING) == "*"
