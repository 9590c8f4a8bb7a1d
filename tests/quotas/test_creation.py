"""Who makes topics and groups."""

from __future__ import annotations

import pytest

from sprocket.base.errors import SystemBusy
from sprocket.quotas.creation import check_creation, creation_check


def test_without_anybody_who_counts_everything_may_be_made() -> None:
    check_creation("new_topics")


def test_whoever_counts_may_refuse() -> None:
    made: list[str] = []

    def check(limit: str) -> None:
        if made:
            raise SystemBusy("enough")
        made.append(limit)

    token = creation_check.set(check)
    try:
        check_creation("new_groups")
        with pytest.raises(SystemBusy):
            check_creation("new_groups")
    finally:
        creation_check.reset(token)
    check_creation("new_groups")
    assert made == ["new_groups"]
