from __future__ import annotations

import re

from sprocket.client.fetching.statistics import Counters, WindowStatistics
from sprocket.client.metrics import exposition
from sprocket.message.queue import QueueId

LINE = re.compile(r'[a-z_]+\{([a-z]+="([^"\\\n]|\\["\\n])*",?)+\} [0-9.e+-]+')


def statistics(group: str = "readers") -> object:
    counters = Counters(group)
    counters.pulled("news", 1.0, count=3, seconds=0.25)
    counters.called("news", 2.0, count=3, failed=1, seconds=0.5)
    counters.throttled("news", 2.0, "bytes")
    window = WindowStatistics(QueueId("news", "broker-a", 2), 7, 11, 3, 1, 10, 3, "bytes")
    return counters.snapshot(3.0, [window])


def test_what_a_consumer_does_is_told_in_prometheus_words() -> None:
    text = exposition(statistics())  # type: ignore[arg-type]
    lines = text.splitlines()
    assert 'sprocket_consumer_consumed_total{group="readers",topic="news"} 2' in lines
    assert 'sprocket_consumer_failed_total{group="readers",topic="news"} 1' in lines
    assert (
        'sprocket_consumer_throttled_total{group="readers",topic="news",limit="bytes"} 1' in lines
    )
    assert 'sprocket_consumer_pull_seconds{group="readers",topic="news"} 0.25' in lines
    queue = 'group="readers",topic="news",broker="broker-a",queue="2"'
    assert f"sprocket_consumer_window_full{{{queue}}} 1" in lines
    assert f'sprocket_consumer_window_messages{{{queue},state="waiting"}} 3' in lines
    assert "# TYPE sprocket_consumer_pulled_total counter" in lines
    assert text.endswith("\n")


def test_every_line_is_well_formed_and_families_stay_together() -> None:
    text = exposition([statistics(), statistics('odd "name\\\n')])  # type: ignore[list-item]
    families = []
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            families.append(line.split()[2])
        elif not line.startswith("#"):
            assert LINE.fullmatch(line), line
            assert line.startswith(families[-1] + "{")
    assert len(families) == len(set(families)) == 13


def test_nothing_to_tell_is_no_text() -> None:
    assert exposition([]) == ""
