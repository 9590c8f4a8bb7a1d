"""Real randomness."""

from __future__ import annotations

import os

import pytest

from sprocket.runtime.entropy import SystemEntropy
from tests.support import code_of_child


def test_draws_stay_in_their_bounds() -> None:
    entropy = SystemEntropy()
    assert all(0 <= entropy.random() < 1 for _ in range(100))
    assert {entropy.below(3) for _ in range(200)} == {0, 1, 2}
    assert len(entropy.token(16)) == 16


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_repeat_its_parent() -> None:
    entropy = SystemEntropy()
    entropy.random()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write_end, repr(entropy.random()).encode())
        os._exit(0)
    assert code_of_child(child) == 0
    assert os.read(read_end, 100) != repr(entropy.random()).encode()
    os.close(read_end)
    os.close(write_end)
