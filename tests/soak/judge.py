"""What came of a soak, by the lines of its processes. Pure: lines in, figures out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

#: Seconds after its last word that a member is believed to have its queues, unless it ended.
_WORD_GOOD = 0.75
#: Seconds that a lease is trusted, so that a call keeps others away for so long at least.
_TRUST = 30.0


@dataclass
class Figures:
    """Counts of one group's topic.

    Attributes:
        lost: acknowledged and never consumed.
        duplicated: consumed more than once, all times after the first.
        unordered: begun before all that lies before it in its queue was consumed (ordered only).
        overlapping: begun while another member was at the same queue (ordered only).
        longest_gap: seconds that a queue had no owner, at most.
    """

    sent: int = 0
    failed: int = 0
    acknowledged: int = 0
    consumed: int = 0
    duplicated: int = 0
    given_back: int = 0
    lost: int = 0
    unordered: int = 0
    overlapping: int = 0
    longest_gap: float = 0.0
    lost_keys: list[str] = field(default_factory=list)


@dataclass
class _Call:
    member: str
    queue: str
    offset: int
    began: float
    ended: float | None = None
    is_done: bool = False


class Judge:
    """Reads lines, and says what they come to. Each process has a name of its own."""

    def __init__(self) -> None:
        self._sent: dict[str, set[str]] = defaultdict(set)
        self._failed: dict[str, int] = defaultdict(int)
        self._acknowledged: dict[str, set[str]] = defaultdict(set)
        self._ends: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._begun: dict[str, int] = defaultdict(int)
        self._calls: dict[tuple[str, str, str, int, str], _Call] = {}
        self._ordered: list[_Call] = []
        #: By kind and member, when it said that it has which queues.
        self._words: dict[str, list[tuple[float, str, frozenset[str]]]] = defaultdict(list)
        #: By member, when its process was killed, stopped, or left.
        self._gone: dict[str, list[float]] = defaultdict(list)
        self._killed: dict[str, float] = {}

    def read(self, lines: Iterable[str]) -> None:
        """Takes in lines of one process; a last line that is cut off is left out."""
        for line in lines:
            words = line.split()
            if line.endswith("\n") and len(words) > 2:
                self._take(words[0], float(words[1]), words[2:])

    def gone(self, member: str, at: float, *, is_killed: bool) -> None:
        """A member's process was killed, or stands still from now on."""
        self._gone[member].append(at)
        if is_killed:
            self._killed[member] = at

    def _take(self, what: str, at: float, words: list[str]) -> None:
        kind = words[0]
        if what == "send":
            self._sent[kind].add(words[1])
        elif what == "fail":
            self._failed[kind] += 1
        elif what == "ack":
            self._acknowledged[kind].add(words[1])
        elif what == "has":
            queues = frozenset(words[2].split(",")) - {"-"}
            self._words[kind].append((at, words[1], queues))
        elif what == "begin":
            self._begin(at, words)
        elif what == "end":
            self._ends[kind][words[4]] += 1
            call = self._calls.pop(_place(words), None)
            if call is not None:
                call.ended, call.is_done = at, True
        elif what == "left":
            self._gone[words[0]].append(at)

    def _begin(self, at: float, words: list[str]) -> None:
        kind, member, queue, offset = words[0], words[1], words[2], int(words[3])
        self._begun[kind] += 1
        if kind == "ordered":
            call = self._calls[_place(words)] = _Call(member, queue, offset, at)
            self._ordered.append(call)

    @property
    def counts(self) -> dict[str, tuple[int, int, int]]:
        """By kind: sent, acknowledged, and consumed of what was acknowledged."""
        return {
            kind: (
                len(self._sent[kind]),
                len(self._acknowledged[kind]),
                len(self._acknowledged[kind] & self._ends[kind].keys()),
            )
            for kind in ("any", "ordered")
        }

    @property
    def is_done(self) -> bool:
        """Whether all that was acknowledged is consumed."""
        return all(acknowledged == consumed for _, acknowledged, consumed in self.counts.values())

    def figures(self, *, since: float, until: float) -> dict[str, Figures]:
        """The result, by kind; gaps between two moments."""
        found = {}
        for kind in ("any", "ordered"):
            ends = self._ends[kind]
            lost = sorted(self._acknowledged[kind] - ends.keys())
            found[kind] = Figures(
                sent=len(self._sent[kind]),
                failed=self._failed[kind],
                acknowledged=len(self._acknowledged[kind]),
                consumed=len(ends),
                duplicated=sum(times - 1 for times in ends.values()),
                given_back=self._begun[kind] - sum(ends.values()),
                lost=len(lost),
                longest_gap=round(self._longest_gap(kind, since, until), 2),
                lost_keys=lost[:10],
            )
        found["ordered"].unordered, found["ordered"].overlapping = self._disorder()
        return found

    def _disorder(self) -> tuple[int, int]:
        unordered = overlapping = 0
        by_queue: dict[str, list[_Call]] = defaultdict(list)
        for call in self._ordered:
            if call.ended is None:
                call.ended = self._killed.get(call.member)
            by_queue[call.queue].append(call)
        for calls in by_queue.values():
            calls.sort(key=lambda call: call.began)
            done: dict[int, float] = {}
            for call in calls:
                if call.is_done and call.ended is not None:
                    done[call.offset] = min(call.ended, done.get(call.offset, call.ended))
            last: _Call | None = None
            for call in calls:
                before = done.get(call.offset - 1) if call.offset else 0.0
                unordered += before is None or before > call.began
                if last is not None and last.member != call.member:
                    end = last.began + _TRUST if last.ended is None else last.ended
                    overlapping += call.began < min(end, last.began + _TRUST)
                last = call
        return unordered, overlapping

    def _longest_gap(self, kind: str, since: float, until: float) -> float:
        spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for at, member, queues in self._words[kind]:
            ended = min((t for t in self._gone[member] if t >= at), default=until)
            for queue in queues:
                spans[queue].append((at, min(at + _WORD_GOOD, ended)))
        longest = 0.0
        for found in spans.values():
            reached = since
            for begin, end in sorted(found):
                if begin > reached:
                    longest = max(longest, begin - reached)
                reached = max(reached, end)
            longest = max(longest, until - reached)
        return longest


def _place(words: list[str]) -> tuple[str, str, str, int, str]:
    return (words[0], words[1], words[2], int(words[3]), words[5])


def told(figures: Mapping[str, Figures]) -> dict[str, Any]:
    """The figures as JSON can have them."""
    return {kind: asdict(each) for kind, each in figures.items()}
