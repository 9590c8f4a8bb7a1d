from __future__ import annotations

import pickle
import re
from dataclasses import fields

import pytest

from sprocket.base.errors import ConfigError
from sprocket.message.queue import QueueId
from sprocket.spark.options.declare import declared, unknown
from sprocket.spark.options.options import BatchOptions, StoreOptions, StreamOptions, read_options
from sprocket.spark.options.write_options import WriteOptions

MINIMAL = {"namesrvAddr": "127.0.0.1:9876", "subscribe": "orders"}


def test_few_options_are_enough() -> None:
    options = read_options(MINIMAL, BatchOptions)
    assert options.nameservers == ("127.0.0.1:9876",)
    assert options.topics == ("orders",)
    assert options.fails_on_loss
    assert options.filter.is_all


def test_names_count_without_case_and_values_are_typed() -> None:
    options = read_options(
        {
            "NAMESRVADDR": "a:1; b:2,[::1]:3",
            "subscribe": " orders , returns,orders",
            "minpartitions": "8",
            "FailOnDataLoss": "FALSE",
            "tags": " paid || new ",
            "fetchoffset.numretries": "0",
        },
        BatchOptions,
    )
    assert options.nameservers == ("a:1", "b:2", "[::1]:3")
    assert options.topics == ("orders", "returns")
    assert options.partitions_min == 8
    assert not options.fails_on_loss
    assert options.filter.tags == ("paid", "new")
    assert options.offset_retries == 0


def test_they_travel_to_other_processes() -> None:
    options = read_options(
        {
            "namesrvAddr": "a:1",
            "assign": '{"orders": {"broker-a": [0]}}',
            "startingOffsets": '{"orders": {"broker-a": {"0": 5}}}',
            "endingTimestamp": "7",
        },
        BatchOptions,
    )
    assert options.queues == {QueueId("orders", "broker-a", 0)}
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("namesrvadr", "namesrvAddr"),
        ("kafka.bootstrap.servers", "namesrvAddr"),
        ("startingOffset", "startingOffsets"),
        ("topic", "subscribe"),
        ("path", "subscribe"),
        ("groupId", "group"),
        ("subExpression", "tags"),
        ("minPartition", "minPartitions"),
        ("maxOffsetPerTrigger", "maxOffsetsPerTrigger"),  # of streams
    ],
)
def test_a_wrong_name_is_refused_with_the_nearest_right_one(wrong: str, right: str) -> None:
    with pytest.raises(ConfigError, match=rf"no option {wrong}: did you mean {right}\?"):
        read_options({**MINIMAL, wrong: "1"}, BatchOptions)


@pytest.mark.parametrize("kind", [BatchOptions, StreamOptions, StoreOptions, WriteOptions])
def test_every_option_is_found_by_names_like_it(kind: type) -> None:
    names = [about.name for _, about in declared(kind).values()]
    for name in names:
        snake = re.sub("([A-Z])", r"_\1", name)
        for wrong in (
            name[:-1],
            f"{name}x",
            snake + "_",
            name[1:],
            f"{name[1]}{name[0]}{name[2:]}",
        ):
            if wrong not in names:
                assert f"did you mean {name}?" in unknown(wrong, names), wrong


def test_a_name_like_none_is_refused_with_all_there_are() -> None:
    with pytest.raises(ConfigError, match=r"there are: subscribe, .*namesrvAddr"):
        read_options({**MINIMAL, "xyzzy": "1"}, BatchOptions)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("namesrvAddr", "nowhere"),
        ("namesrvAddr", ":9876"),
        ("namesrvAddr", "host:99999"),
        ("namesrvAddr", " ; "),
        ("subscribe", " , "),
        ("subscribe", "no topic"),
        ("subscribePattern", "(["),
        ("group", "no group"),
        ("tags", "||"),
        ("failOnDataLoss", "maybe"),
        ("minPartitions", "0"),
        ("minPartitions", "many"),
        ("pullMaxBytes", "12"),
        ("startingOffsetsByTimestampStrategy", "guess"),
        ("startingOffsets", "middle"),
        ("endingOffsets", "earliest"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_option(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        read_options({**MINIMAL, name.lower(): value}, BatchOptions)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subscribe": "orders"}, "namesrvAddr is missing"),
        ({"namesrvAddr": "a:1"}, "none is given"),
        ({**MINIMAL, "subscribePattern": "o.*"}, "subscribe and subscribePattern together"),
    ],
)
def test_it_must_be_clear_where_to_read_from(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_options(given, BatchOptions)


def test_every_option_says_what_it_is() -> None:
    for one in (*fields(BatchOptions), *fields(StreamOptions)):
        about = one.metadata["option"]
        assert about.doc.strip().endswith("."), about.name
