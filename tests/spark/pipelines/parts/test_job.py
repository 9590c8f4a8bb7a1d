from __future__ import annotations

from typing import Any

import pytest

from sprocket.base.errors import UsageError
from sprocket.spark import pipelines
from sprocket.spark.pipelines import Apply, Lag, Trace, Volume
from sprocket.spark.pipelines.parts.job import settings
from sprocket.spark.pipelines.parts.servers import AccessKeys

KINDS = [getattr(pipelines, name) for name in pipelines.__all__]


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_says_what_it_means_under_a_name_of_its_own(kind: type) -> None:
    said = [about for _, about in settings(kind)]
    assert len({one.option for one in said}) == len(said)
    assert all(one.doc.endswith((".", "…")) or "`" in one.doc for one in said)
    assert kind.__doc__


def test_a_job_becomes_options_of_the_source() -> None:
    job = Volume(
        nameservers="a:1;b:2",
        topics=("x", "y"),
        tags="t || u",
        since_ms=5,
        options=("pullMaxBytes=1024", "sql=a = 'b'"),
        keys=AccessKeys("me", "secret"),
    )
    assert job.reading() == {
        "namesrvAddr": "a:1;b:2",
        "accessKey": "me",
        "secretKey": "secret",
        "pullMaxBytes": "1024",
        "sql": "a = 'b'",
        "failOnDataLoss": "True",
        "subscribe": "x,y",
        "tags": "t || u",
        "startingTimestamp": "5",
    }
    assert "secret" not in repr(job).replace("secret_key", "")
    pattern = Volume(nameservers="a:1", pattern="o.*", allows_loss=True).reading()
    assert (pattern["subscribePattern"], pattern["failOnDataLoss"]) == ("o.*", "False")


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError, match="NAME=VALUE, not 'x'"):
        Volume(nameservers="a:1", topics=("x",), options=("x",)).reading()
    with pytest.raises(UsageError, match="format is one of parquet, csv"):
        Lag(nameservers="a:1", folder="f", form="xls")
    with pytest.raises(UsageError, match="every cannot be negative"):
        Lag(nameservers="a:1", folder="f", every_s=-1.0)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"every_s": float("nan")}, "every is a number, not nan"),
        ({"every_s": float("inf")}, "every is a number, not inf"),
        ({"batch_rows": 0}, "batch-rows must be at least 1, not 0"),
        ({"batch_rows": -(10**400)}, "batch-rows cannot be negative"),
        ({"folder": ""}, "to is empty"),
        ({"topics": "orders"}, r"topic is a tuple of texts, such as \('orders',\)"),
        ({"topics": ("orders", " ")}, "topic is empty"),
        ({"unavailable": ""}, "unavailable is empty"),
        ({"nameservers": " "}, "nameserver is empty"),
    ],
)
def test_numbers_and_texts_that_nobody_means_are_refused_by_name(
    given: dict[str, Any], reason: str
) -> None:
    right: dict[str, Any] = {"nameservers": "a:1", "topics": ("orders",), "folder": "f"}
    Apply(**right)
    with pytest.raises(UsageError, match=reason):
        Apply(**{**right, **given})


def test_a_job_does_not_show_its_options() -> None:
    job = Volume(nameservers="a:1", topics=("x",), options=("schemaRegistryPassword=hush",))
    assert "hush" not in repr(job)


def test_a_digest_tells_jobs_apart() -> None:
    one = Trace(nameservers="a:1", since_ms=1)
    assert one.digest("since_ms") == Trace(nameservers="b:1", since_ms=1).digest("since_ms")
    assert one.digest("since_ms") != Trace(nameservers="a:1", since_ms=2).digest("since_ms")
