from __future__ import annotations

import logging

import pytest

from sprocket.client.base.subscription import Later, Outcome
from sprocket.client.delivery.verdict import verdict_on

SOON = Later(1)


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (None, None),
        (SOON, [SOON, SOON, SOON]),
        ([None, None, None], None),
        ([None, SOON, None], [None, SOON, None]),
        ((Later(-1), None, SOON), [Later(-1), None, SOON]),
    ],
)
def test_a_result_speaks_for_all_messages_or_for_each(result: object, verdict: object) -> None:
    assert verdict_on(result, 3) == verdict


@pytest.mark.parametrize(
    "result",
    [
        [None],
        [None] * 4,
        [1, None, None],
        True,
        "ok",
        Outcome.COMMIT,
        Later("soon"),
        [None, None, Later(None)],
    ],  # type: ignore[arg-type]
)
def test_nonsense_is_a_failure_of_all_and_is_told(
    result: object, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        assert verdict_on(result, 3) == [Later()] * 3
    assert repr(result) in caplog.text
