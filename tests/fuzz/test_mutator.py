"""Inputs by chance, and their smallest form."""

from __future__ import annotations

import random

from tests.fuzz.mutator import mutated, smallest


def test_the_same_chance_makes_the_same_inputs_which_differ_from_the_seeds() -> None:
    seeds = [b"hello world", bytes(100)]
    first, second = (
        [mutated(seeds, chance, bytes_max=200) for _ in range(200)]
        for chance in (random.Random(7), random.Random(7))
    )
    assert first == second
    assert len(set(first)) > 150
    assert all(len(each) <= 200 for each in first)
    assert any(len(each) > 100 for each in first)


def test_an_input_is_made_as_small_as_it_still_fails() -> None:
    data = bytes(300) + b"a" + bytes(200) + b"b" + bytes(99)
    assert smallest(data, lambda tried: b"a" in tried and b"b" in tried) == b"ab"
    assert smallest(b"", lambda tried: True) == b""


def test_it_gives_up_after_so_many_tries() -> None:
    asked = []
    smallest(bytes(1_000), lambda tried: bool(asked.append(tried)), tries=50)
    assert len(asked) == 50
