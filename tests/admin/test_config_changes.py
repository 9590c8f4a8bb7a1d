"""What a change of a configuration has done, in a word."""

from __future__ import annotations

import pytest

from sprocket.admin.config_changes import ConfigChange


@pytest.mark.parametrize(
    ("before", "after", "done"), [(None, 8, "created"), (4, 8, "changed"), (8, 8, "unchanged")]
)
def test_a_change_says_what_is_done(before: int | None, after: int, done: str) -> None:
    assert ConfigChange("broker-a", before, after).done == done
