"""Scenarios of sending and consuming: groups of all kinds with all faults, by name and seed.

outcome = play("ordered", seed=17)      # raises Violation if an invariant does not hold

A seed gives the same history only while its scenario's row, and all code that draws from its
entropy, do not change. So never change a row that has a seed kept as a test: add another row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from sprocket.store.config import StoreConfig
from sprocket.testing.cluster import SMALL_STORE
from sprocket.testing.consuming import ConsumingRun
from sprocket.testing.history import HistoryOutcome, play_history
from sprocket.testing.members import Style
from sprocket.testing.traffic import Traffic

_NETWORK = ("break", "cut", "slow", "answers")
_BROKERS = ("restart-broker", "kill-broker", "pause-broker")
_MEMBERS = ("join", "leave", "kill-member", "stop-member")
_EVERYTHING = (
    *_NETWORK,
    *_BROKERS,
    *_MEMBERS,
    *("clock", "client-clock", "restart-nameserver", "kill-nameserver", "kill-producer"),
    *("kill-all", "resubscribe"),
)
_SLOW_FLUSH = replace(SMALL_STORE, flush="SYNC_FLUSH")
#: Removes what is old at any hour.
_DELETING = replace(
    SMALL_STORE, log_file_bytes=8 * 1024, delete_hours=";".join(map(str, range(24)))
)
_SMALL_PACKS = replace(SMALL_STORE, batch_queue_file_bytes=20 * 46)
_TWO = ("orders", "bills")


@dataclass(frozen=True, slots=True)
class Scenario:
    """A cluster, its clients, and the faults that happen to them.

    Attributes:
        doc: one sentence.
        styles: the groups.
        faults: names of faults of `weather` and `Crowd.faults`, drawn with equal probability.
        count: number of faults.
        nameservers, brokers: number of each.
        traffic: what is sent.
        store: settings of the brokers' stores.
        sync_seconds: the shortest and the longest time of a sync of their disks.
        pause_seconds: the least time between faults; 0 for any.
        gap_seconds_max, overlap_seconds_max: the longest time that a queue may have no owner, or
            two.
    """

    doc: str
    styles: tuple[Style, ...]
    faults: tuple[str, ...]
    count: int = 6
    nameservers: int = 1
    brokers: int = 1
    traffic: Traffic = field(default_factory=Traffic)
    store: StoreConfig = SMALL_STORE
    sync_seconds: tuple[float, float] = (0.0005, 0.02)
    pause_seconds: float = 0.0
    gap_seconds_max: float = math.inf
    overlap_seconds_max: float = math.inf


_ORDERED = Style("orderly", "ordered", listener_seconds=0.3, slow_seconds=20.0)
_FAILING = Traffic(failures=0.15, poison=0.05)

SCENARIOS: dict[str, Scenario] = {
    "fair": Scenario("Nothing goes wrong.", (Style(),), ()),
    "connections": Scenario(
        "Connections break, and links are cut or slow.",
        (Style(members=3),),
        ("break", "break", "cut", "slow"),
    ),
    "restarts": Scenario(
        "Brokers are stopped in order and started again.",
        (Style(),),
        ("restart-broker", "restart-broker", "break", "clock"),
    ),
    "kills": Scenario(
        "Broker processes are killed and started again.",
        (Style(),),
        ("kill-broker", "kill-broker", "break", "clock"),
    ),
    "nameservers": Scenario(
        "Name servers stop and start again, and so do brokers.",
        (Style(),),
        ("restart-nameserver", "kill-nameserver", "restart-broker", "cut"),
        nameservers=2,
    ),
    "members": Scenario(
        "Members of the group join, leave and die.",
        (Style(),),
        ("join", "leave", "kill-member", "break"),
    ),
    "power": Scenario(
        "Brokers with slow disks lose their power; a send is answered when it is on the disk.",
        (Style(listener_seconds=0.02),),
        ("power-broker", "power-broker", "break", "restart-broker"),
        traffic=Traffic(seconds=60.0),
        store=_SLOW_FLUSH,
        sync_seconds=(0.01, 1.5),
    ),
    "storm": Scenario(
        "Many of these faults at once, with two brokers and retries.",
        (Style(),),
        (
            *("break", "cut", "slow", "clock", "restart-broker", "kill-broker"),
            *("restart-nameserver", "join", "leave", "kill-member"),
        ),
        count=8,
        nameservers=2,
        brokers=2,
        traffic=Traffic(failures=0.1),
    ),
    "concurrent": Scenario(
        "Members share the queues of two topics, with all kinds of faults.",
        (Style(topics=_TWO), Style("batches", topics=("bills",), batch=5)),
        _EVERYTHING,
        brokers=2,
        traffic=Traffic(topics=_TWO),
    ),
    "ordered": Scenario(
        "Each queue's messages are consumed in order, by one member at a time.",
        (_ORDERED,),
        (*_NETWORK, *_BROKERS, *_MEMBERS, *_MEMBERS, "clock", "client-clock", "kill-all"),
        traffic=_FAILING,
    ),
    "ordered-topics": Scenario(
        "The same with two topics, two brokers, and subscriptions that change.",
        (replace(_ORDERED, topics=_TWO),),
        (*_MEMBERS, "resubscribe", "resubscribe", "restart-broker", "kill-broker", "cut"),
        brokers=2,
        traffic=replace(_FAILING, topics=_TWO, queues=2),
    ),
    "ordered-power": Scenario(
        "The broker of an ordered group loses its power.",
        (_ORDERED,),
        ("power-broker", "power-broker", "stop-member", "leave", "join", "cut"),
        traffic=_FAILING,
        store=_SLOW_FLUSH,
    ),
    "ordered-restarts": Scenario(
        "The broker of an ordered group is killed again and again, and members are too.",
        (replace(_ORDERED, members=3, slow_seconds=2.0),),
        ("kill-broker", "kill-broker", "kill-broker", "kill-member", "join"),
        count=20,
        traffic=Traffic(messages=50, seconds=120.0),
        gap_seconds_max=120.0,
    ),
    "frozen": Scenario(
        "Connections lose all bytes, and neither end notices.",
        (Style(), _ORDERED, Style("lite", "lite")),
        ("freeze", "freeze", "freeze", "break", "join", "leave", "kill-member"),
        traffic=Traffic(seconds=60.0),
        gap_seconds_max=150.0,
    ),
    "stopped": Scenario(
        "Members and brokers are stopped for a while, and leases expire meanwhile.",
        (replace(_ORDERED, listener_seconds=4.0), Style()),
        ("stop-member", "stop-member", "stop-member", "pause-broker", "join", "leave"),
        count=4,
        traffic=Traffic(queues=2, messages=40),
    ),
    "broadcasting": Scenario(
        "Every member gets every message, though it dies and comes back.",
        (Style("everybody", "broadcasting", topics=_TWO),),
        (*_NETWORK, *_BROKERS, *_MEMBERS, "kill-member", "kill-all", "kill-nameserver"),
        brokers=2,
        traffic=Traffic(topics=_TWO, queues=2),
    ),
    "lite": Scenario(
        "Lite pull consumers share the queues of their topics.",
        (
            Style("lite", "lite", topics=_TWO, listener_seconds=1.5),
            Style("by-hand", "lite", auto_commit=False),
        ),
        _EVERYTHING,
        brokers=2,
        traffic=Traffic(topics=_TWO),
    ),
    "assigned": Scenario(
        "Lite pull consumers read chosen queues, seek and pause.",
        (
            Style("chosen", "assigned", topics=_TWO, members=1),
            Style("by-hand", "assigned", members=1, auto_commit=False),
        ),
        (*_NETWORK, *_BROKERS, "kill-member", "kill-member", "leave", "stop-member", "join"),
        traffic=Traffic(topics=_TWO, queues=2),
    ),
    "dead-letters": Scenario(
        "Messages fail, some always; members, brokers and connections fail too.",
        (Style(listener_seconds=3.0), Style("thrice", reconsume_max=1)),
        (*_NETWORK, *_BROKERS, *_MEMBERS, "clock"),
        traffic=Traffic(failures=0.3, poison=0.1, messages=15),
    ),
    "delayed": Scenario(
        "Messages wait on delay levels, while brokers are killed and members die.",
        (Style(),),
        ("kill-broker", "kill-broker", "restart-broker", "pause-broker", "break", "kill-member"),
        traffic=Traffic(delayed=0.6, failures=0.1),
    ),
    "delayed-power": Scenario(
        "Messages wait on delay levels, and the broker loses its power.",
        (Style(),),
        ("power-broker", "power-broker", "restart-broker", "break"),
        traffic=Traffic(delayed=0.6, failures=0.1),
        store=_SLOW_FLUSH,
    ),
    "resets": Scenario(
        "An operator resets the offsets of groups while they consume.",
        (Style(listener_seconds=1.0), replace(_ORDERED, slow_seconds=5.0), Style("lite", "lite")),
        ("reset", "reset", "reset", *_MEMBERS, "kill-broker", "restart-broker", "break", "cut"),
        count=8,
    ),
    "resets-assigned": Scenario(
        "The same with consumers that read chosen queues, and are no members.",
        (
            Style("chosen", "assigned", members=1, listener_seconds=1.0, seeks=False),
            Style("by-hand", "assigned", members=1, auto_commit=False, seeks=False),
        ),
        ("reset", "reset", "reset", "kill-member", "leave", "join", "kill-broker", "break", "cut"),
        count=8,
        traffic=Traffic(queues=2),
    ),
    "disks": Scenario(
        "The disk is slow, full, or fails.",
        (Style(), _ORDERED),
        ("disk-slow", "disk-full", "disk-error", "kill-broker", "join", "kill-member"),
        traffic=Traffic(delayed=0.2, failures=0.1),
        store=_SLOW_FLUSH,
    ),
    "rebalance": Scenario(
        "Members join, leave and die one by one; measures how long queues have no owner, or two.",
        (Style(members=3), Style("orderly", "ordered", members=3)),
        ("join", "leave", "kill-member"),
        brokers=2,
        traffic=Traffic(messages=60, seconds=120.0),
        pause_seconds=45.0,
        gap_seconds_max=45.0,
        overlap_seconds_max=3.0,
    ),
    "clocks": Scenario(
        "Wall clocks jump by seconds, hours and days, and are set right; brokers restart.",
        (Style(listener_seconds=1.0), _ORDERED),
        ("jump", "jump", "jump", "restart-broker", "kill-broker", "join", "kill-member"),
        count=12,
        brokers=2,
        traffic=Traffic(delayed=0.3, failures=0.2),
        store=_DELETING,
    ),
    "clocks-resets": Scenario(
        "The same while an operator resets offsets.",
        (Style(listener_seconds=1.0), Style("lite", "lite")),
        ("jump", "jump", "reset", "reset", "kill-broker", "break"),
        count=12,
        store=_DELETING,
    ),
    "packs": Scenario(
        "The topics keep each batch as one record; all faults at once.",
        (Style(topics=_TWO), _ORDERED, Style("lite", "lite", topics=_TWO, members=1)),
        (*_EVERYTHING, "reset"),
        count=10,
        brokers=2,
        traffic=Traffic(
            topics=_TWO, queues=2, batches=0.6, delayed=0.1, failures=0.1, keeps_batches=True
        ),
        store=_SMALL_PACKS,
    ),
    "packs-power": Scenario(
        "The same, and brokers with slow disks lose their power.",
        (Style(listener_seconds=0.02), Style("lite", "lite", members=1)),
        ("power-broker", "power-broker", "kill-broker", "break", "restart-broker"),
        traffic=Traffic(seconds=60.0, messages=50, batches=0.6, keeps_batches=True),
        store=replace(_SMALL_PACKS, flush="SYNC_FLUSH"),
        sync_seconds=(0.01, 1.5),
    ),
    "tempest": Scenario(
        "All kinds of groups and all faults at once.",
        (
            Style(topics=_TWO),
            _ORDERED,
            Style("everybody", "broadcasting", members=1),
            Style("lite", "lite", topics=_TWO, members=1),
        ),
        (*_EVERYTHING, "reset", "disk-slow", "disk-full"),
        count=10,
        nameservers=2,
        brokers=2,
        traffic=Traffic(topics=_TWO, queues=2, delayed=0.1, failures=0.1, poison=0.02),
    ),
}


def play(name: str, seed: int, *, instead: Scenario | None = None) -> HistoryOutcome:
    """Runs a scenario of `SCENARIOS`.

    Args:
        name, seed: the history.
        instead: replaces the scenario, to find the smallest form that still fails.

    Raises:
        Violation: an invariant does not hold; the text has scenario, seed and a story.
    """
    scenario = instead or SCENARIOS[name]
    return play_history(name, seed, lambda network, words: ConsumingRun(scenario, network, words))
