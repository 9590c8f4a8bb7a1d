"""Writes the page of the settings that change while a broker runs: `python -m
tests.broker.live_settings_page`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from sprocket.base.config import settings_of
from sprocket.broker.live_settings import SettingRow, setting_rows
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.configuration import CHANGEABLE

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "live-settings.md"
_HEAD = """\
# Settings that change while servers run

`sprocket config set`, `mqadmin updateBrokerConfig` and `updateNamesrvConfig` \
change them; [operating](operating.md#settings-that-change-while-a-server-runs) says how, and what \
becomes of a change at the next start. A setting has RocketMQ's name where it has one; ours works \
too. A pause or a time limit that has begun ends as it began; \
heartbeats and silence of replication count from the next connection on.

This page is made from the code by `python -m tests.broker.live_settings_page`.
"""


def _named(row: SettingRow) -> str:
    return f"`{row.name}`" if row.name == row.own_name else f"`{row.name}` ({row.own_name})"


def _parts() -> Iterator[str]:
    yield _HEAD
    for why_not, rows in groupby(setting_rows(), key=attrgetter("why_not")):
        if not why_not:
            yield "## A broker's, at once\n"
        else:
            yield f"### Since {why_not}\n" if why_not else ""
        yield "".join(f"* {_named(row)}\n" for row in rows)
        if not why_not:
            yield (
                "`inSyncReplicas` and `minInSyncReplicas` change among numbers above 1: whether "
                "sends wait for slaves at all is decided at the start. `fileReservedTime` cannot "
                "become so short that messages that wait for their time would be deleted.\n"
            )
            yield "## A broker's, after a restart\n"
    declared = settings_of(NameServerConfig)
    names = {name: next(iter(each.rocketmq_names), each.key) for name, each in declared.items()}
    yield "## A name server's, at once\n"
    yield "".join(f"* `{names[name]}`\n" for name in declared if name in CHANGEABLE)
    yield "The others need a restart.\n"


def page() -> str:
    """The page."""
    return "\n".join(_parts())


if __name__ == "__main__":
    PAGE.write_text(page())
