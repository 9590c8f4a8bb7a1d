"""Randomness from a seed."""

from __future__ import annotations

from sprocket.testing.entropy import SeededEntropy


def test_the_same_seed_says_the_same() -> None:
    one, two = SeededEntropy(7), SeededEntropy(7)
    assert [one.random(), one.below(9), one.token(4)] == [two.random(), two.below(9), two.token(4)]
    assert one.fork("a").random() == two.fork("a").random()


def test_forks_differ_by_name() -> None:
    assert SeededEntropy(7).fork("a").random() != SeededEntropy(7).fork("b").random()


def test_it_says_the_same_on_every_machine() -> None:
    assert SeededEntropy("sprocket").below(1_000_000) == 983_249
