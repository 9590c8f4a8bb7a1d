"""Each target of the fuzzer takes its seeds, and what hypothesis makes of them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, a_store, seeds


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_is_taken_or_refused_in_words(name):
    given_seeds = seeds(name)
    assert given_seeds
    for seed in given_seeds:
        TARGETS[name](seed)


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_seed_is_taken_or_refused_in_words(name, data):
    seed = bytearray(data.draw(st.sampled_from(seeds(name))))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(seed) - 1))
        seed[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=6))
        if not seed:
            break
    TARGETS[name](bytes(seed))


def test_the_store_that_is_damaged_has_files_of_every_kind():
    _, paths = a_store()
    for part in ("commitlog", "consumequeue", "index"):
        assert any(part in path for path in paths), paths
