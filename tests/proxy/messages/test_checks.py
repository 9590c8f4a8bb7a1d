"""Names and texts that the service refuses."""

from __future__ import annotations

import pytest

from sprocket.proxy.messages import checks
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused


@pytest.mark.parametrize(
    "name",
    ["", " ", "a b", "ä", "a" * 128, "TBW102", "rmq_sys_x", "SCHEDULE_TOPIC_XXXX", "x" * 10**6],
)
def test_what_is_no_topic_of_users_is_refused(name: str) -> None:
    with pytest.raises(CallRefused) as caught:
        checks.topic_name(pb.Resource(name=name))
    assert caught.value.code == pb.ILLEGAL_TOPIC


@pytest.mark.parametrize("name", ["", "a b", "a" * 121, "CID_RMQ_SYS_TRANS"])
def test_what_is_no_group_of_users_is_refused(name: str) -> None:
    with pytest.raises(CallRefused) as caught:
        checks.group_name(pb.Resource(name=name))
    assert caught.value.code == pb.ILLEGAL_CONSUMER_GROUP


def test_names_are_given_back() -> None:
    assert checks.topic_name(pb.Resource(name="%RETRY%g")) == "%RETRY%g"
    assert checks.group_name(pb.Resource(name="a" * 120)) == "a" * 120


@pytest.mark.parametrize("tag", [" ", "a|b", "a\0", "a\x85"])
def test_what_is_no_tag_is_refused(tag: str) -> None:
    with pytest.raises(CallRefused) as caught:
        checks.check_tag(tag)
    assert caught.value.code == pb.ILLEGAL_MESSAGE_TAG


def test_control_characters_are_those_of_java() -> None:
    assert all(checks.has_control(chr(each)) for each in (0, 1, 2, 31, 127, 128, 159))
    assert not any(checks.has_control(each) for each in ("", "a b", "é", "\xa0", "\u2028", "😀"))


def test_an_invisible_time_has_bounds() -> None:
    checks.check_invisible(10, 10, 20)
    checks.check_invisible(10**9, 10, 0)
    for milliseconds in (9, 21):
        with pytest.raises(CallRefused):
            checks.check_invisible(milliseconds, 10, 20)


def test_expressions_are_bounded_and_parsed() -> None:
    tags = checks.check_expression(pb.FilterExpression(type=pb.TAG, expression=" a || b "))
    assert tags is not None
    assert tags.tags == ("a", "b")
    assert checks.check_expression(pb.FilterExpression(type=pb.SQL, expression="a >")) is None
    for expression in ("||", "x" * 16_385):
        with pytest.raises(CallRefused) as caught:
            checks.check_expression(pb.FilterExpression(type=pb.TAG, expression=expression))
        assert caught.value.code == pb.ILLEGAL_FILTER_EXPRESSION
