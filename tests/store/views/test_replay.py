"""Records that are taken apart quickly: the same comes out as where each is looked at alone."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sprocket.delay.levels.levels import DelayLevels
from sprocket.message.hosts import pack
from sprocket.message.record import Draft, Encoder, topic_part
from sprocket.message.topic import SCHEDULE
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.log.paths import LogPaths
from sprocket.store.views.record_batch import RecordBatch
from sprocket.store.views.replay import PIECE_BYTES, after_blank, entry_of, replayed, whole_record
from sprocket.testing.disk import MemoryDisk
from tests.store.making import HOST, a_draft

FILE_BYTES = 4096
TAG_CODES = {SCHEDULE: DelayLevels((1000, 5000)).tag_code}
V6 = pack("[2001:db8::1]:10911")

names = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "XTAGS", "DELAY", "a", ""])
pieces = st.tuples(names, st.sampled_from(["\x01", "\x01", "\x01\x01", ""]), st.sampled_from(
    ["", "1", "v", "ü", "k1 k2", "TAGS", "\udcff"])).map("".join)  # fmt: skip
properties = st.builds(
    lambda parts, end: ("\x02".join(parts) + end).encode("utf-8", "surrogateescape"),
    st.lists(pieces, max_size=5),
    st.sampled_from(["\x02", ""]),
)
drafts = st.builds(
    a_draft,
    body=st.binary(max_size=40),
    topic=st.sampled_from(["orders", "orders", "paid", SCHEDULE, "t" * 128, "ü"]),
    queue_number=st.integers(0, 2),
    properties=properties,
    sys_flag=st.sampled_from([0, 0, 0, 1, 4, 8, 12]),
    born_host=st.sampled_from([HOST, HOST, HOST, V6]),
)
#: Places of the log, and how many bytes of it are zeroed there.
damages = st.lists(
    st.tuples(st.integers(0, 3 * FILE_BYTES - 1), st.sampled_from([1, 8, 600])),
    max_size=3,
)


def a_log(written: list[Draft], *, store_host: bytes = HOST) -> CommitLog:
    log = CommitLog(MemoryDisk(), LogPaths.of("/", ("/log",), ()), FILE_BYTES)
    log.set_end(0)
    encoder = Encoder(store_host)
    for number, draft in enumerate(written):
        raw = b""
        for _ in range(2):  # once for the size, once for the place
            raw = encoder.encode(
                draft, topic_part(draft.topic.encode()),
                log_offset=log.end, queue_offset=number, stored_ms=7000 + number,
            )  # fmt: skip
            log.ensure_space(len(raw))
        log.buffer[log.end - log.base : log.end - log.base + len(raw)] = raw
        log.end += len(raw)
    return log


def one_by_one(log: CommitLog, *, checks_bodies: bool) -> RecordBatch:
    found = RecordBatch()
    at = 0
    while (record := whole_record(log, at, checks_body=checks_bodies)) is not None:
        found.add(entry_of(record, TAG_CODES))
        at = after_blank(log, at + record.size)
    return found


def all_replayed(log: CommitLog, *, checks_bodies: bool = True) -> RecordBatch:
    found = RecordBatch()
    for each in replayed(log, 0, TAG_CODES, checks_bodies=checks_bodies):
        found.count += each.count
        found.end, found.stored_ms = each.end, each.stored_ms
        found.keyed += each.keyed
        found.counts |= each.counts
        for topic, queues in each.queues.items():
            for number, flat in queues.items():
                found.queue(topic, number).extend(flat)
    return found


def told(stretch: RecordBatch) -> tuple[object, ...]:
    """All of it; keys as the text that they are taken for."""
    queues, (topics, keys, *places) = dict(stretch.queue_columns()), stretch.key_columns()
    texts = [key.decode("utf-8", "replace") for key in keys]
    return stretch.count, stretch.end, stretch.stored_ms, queues, topics, texts, places


@settings(max_examples=80, deadline=None)
@given(
    written=st.lists(drafts, min_size=1, max_size=40),
    damage=damages,
    flips=st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), max_size=3),
    store_host=st.sampled_from([HOST, HOST, V6]),
    checks_bodies=st.booleans(),
)
def test_a_damaged_log_gives_what_it_gives_record_by_record(
    written: list[Draft],
    damage: list[tuple[int, int]],
    flips: list[tuple[float, int]],
    store_host: bytes,
    checks_bodies: bool,
) -> None:
    log = a_log(written, store_host=store_host)
    for place, count in damage:
        if place < log.end:
            buffer = log.segments.at(place).buffer
            first = place % FILE_BYTES
            last = min(first + count, FILE_BYTES)
            buffer[first:last] = bytes(last - first)
    for where, bits in flips:
        place = int(where * (log.end - 1))
        log.segments.at(place).buffer[place % FILE_BYTES] ^= bits
    wanted = told(one_by_one(log, checks_bodies=checks_bodies))
    assert told(all_replayed(log, checks_bodies=checks_bodies)) == wanted


#: What senders write: the same around keys and a unique key, which are sometimes odd.
_words = st.sampled_from(
    ["", "", "k1", "k2", "k 3", " k", "K4\x01", "k\x02a\x01b", "ü", "k2 k2", "KEYS\x01", "\udcff5"]
).map(lambda words: f"KEYS\x01{words}\x02" if words else "")
alike = st.builds(
    lambda before, words, key, after, more: f"{before}{words}UNIQ_KEY\x01{key}{after}{more}".encode(
        "utf-8", "surrogateescape"
    ),
    st.sampled_from(["", "", "WAIT\x01true\x02", "XKEYS\x01k\x02", "x"]),
    _words,
    st.sampled_from(["C0A80001", "C0A80002", "C0A8\x02a\x01", "\0\0\0\0\0\0\0\0", "C0", "\x01"]),
    st.sampled_from(["\x02TAGS\x01a\x02", "\x02TAGS\x01b\x02", "\x02", ""]),
    _words | st.just(""),
)


@settings(max_examples=100, deadline=None)
@given(
    written=st.lists(
        st.builds(
            a_draft,
            body=st.binary(max_size=3),
            topic=st.sampled_from(["orders", "paid12"]),
            queue_number=st.integers(0, 1),
            properties=alike,
            sys_flag=st.sampled_from([0, 0, 0, 4]),
        ),
        min_size=20,
        max_size=60,
    ),
    flips=st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), max_size=2),
)
def test_messages_of_one_sender_are_told_apart(
    written: list[Draft], flips: list[tuple[float, int]]
) -> None:
    log = a_log(written)
    for where, bits in flips:
        place = int(where * (log.end - 1))
        log.segments.at(place).buffer[place % FILE_BYTES] ^= bits
    assert told(all_replayed(log)) == told(one_by_one(log, checks_bodies=True))


@settings(max_examples=200, deadline=None)
@example(raw=b"TAGS\x011\x02TAGS\x01", topic="orders")
@given(raw=properties, topic=st.sampled_from(["orders", SCHEDULE]))
def test_words_are_those_that_properties_hold(raw: bytes, topic: str) -> None:
    log = a_log([a_draft(topic=topic), a_draft(topic=topic, properties=raw), a_draft(topic=topic)])
    assert told(all_replayed(log)) == told(one_by_one(log, checks_bodies=True))


def test_records_are_taken_across_the_pieces_that_are_copied() -> None:
    log = CommitLog(MemoryDisk(), LogPaths.of("/", ("/log",), ()), 4 << 20)
    log.set_end(0)
    encoder = Encoder(HOST)
    for number in range(60):
        raw = encoder.encode(
            a_draft(b"x" * (number * 4999 % 90_000)), topic_part(b"orders"),
            log_offset=log.end, queue_offset=number, stored_ms=1,
        )  # fmt: skip
        log.ensure_space(len(raw))
        log.buffer[log.end : log.end + len(raw)] = raw
        log.end += len(raw)
    assert log.end > 2 * PIECE_BYTES, "it takes several"
    ((_, columns),) = all_replayed(log).queue_columns()
    assert columns.queue_offsets == list(range(60))
