"""Rules as texts: what they mean, and which are refused."""

from __future__ import annotations

import pytest

from sprocket.base.errors import UsageError
from sprocket.quotas.rules import Allowance, Quota, QuotaKind, QuotaRules, quotas


def quota(kind: QuotaKind, name: str, *texts: str) -> Quota | None:
    """The limits of a name by some rules."""
    return QuotaRules.parse(texts).quota(kind, name)


def test_a_rule_without_a_burst_has_one_of_a_second() -> None:
    found = quota(QuotaKind.TOPIC, "orders", "topic orders requests=500 bytes_in=10MiB/20MiB")
    assert found == Quota(requests=Allowance(500, 500), bytes_in=Allowance(10 << 20, 20 << 20))


def test_new_topics_are_told_by_the_hour() -> None:
    found = quota(QuotaKind.IP, "10.0.0.1", "ip * new_topics=7200 connections=3")
    assert found == Quota(new_topics=Allowance(2.0, 7200), connections=3)


def test_a_name_overrides_the_default_where_it_says_something() -> None:
    texts = (
        "client * requests=10 held=5",
        "client shop-* requests=20",
        "client shop-1 held=none requests=30",
    )
    assert quota(QuotaKind.CLIENT, "other", *texts) == Quota(requests=Allowance(10, 10), held=5)
    assert quota(QuotaKind.CLIENT, "shop-2", *texts) == Quota(requests=Allowance(20, 20), held=5)
    assert quota(QuotaKind.CLIENT, "shop-1", *texts) == Quota(requests=Allowance(30, 30))


def test_a_name_that_no_rule_names_has_no_limits() -> None:
    assert quota(QuotaKind.TOPIC, "a", "topic b requests=1", "client a requests=1") is None
    assert quota(QuotaKind.TOPIC, "a") is None


def test_an_ipv6_address_is_a_name() -> None:
    assert quota(QuotaKind.IP, "fe80::1", "ip fe80::* connections=1") == Quota(connections=1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "such as `topic orders requests=500`"),
        ("topic orders", "such as"),
        ("topics orders requests=1", "did you mean 'topic'"),
        ("topic or*ders requests=1", "at the end of a name"),
        ("topic orders requests=0", "whole number above 0"),
        ("topic orders requests=1k", "whole number above 0"),
        ("topic orders requests=-1", "whole number above 0"),
        ("topic orders requests=", "whole number above 0"),
        ("topic orders requests=1/0", "whole number above 0"),
        ("topic orders requests=1e3", "whole number above 0"),
        ("topic orders bytes_in=1X", "a size such as"),
        ("topic orders requests=1 requests=2", "twice"),
        ("topic orders connections=1", "limits of a topic are"),
        ("group g bytes_in=1", "limits of a group are"),
        ("client c connections=1/2", "one number"),
        ("client c fast=1", "limits of a client are"),
        ("client c requests=" + "9" * 16, "whole number above 0"),
    ],
)
def test_a_wrong_rule_is_refused_in_words_that_name_it(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=r".*") as error:
        QuotaRules.parse([text])
    assert why in str(error.value)
    complaint = quotas([text])
    assert complaint is not None
    assert why in complaint


def test_two_rules_for_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two rules for topic a"):
        QuotaRules.parse(["topic a requests=1", "topic a held=1"])
    assert quotas(["topic a requests=1", "topic b requests=1"]) is None
