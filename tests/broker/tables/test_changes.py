"""What has changed since when: whoever applies what it gets has the tables, whatever it misses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.broker.tables.changes import GROUPS, OFFSETS, TOPICS, ChangeJournal, Listing

#: A change of a row, by table and key; or one question of a slave.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([TOPICS, GROUPS, OFFSETS]), st.sampled_from("abcde")),
        st.just("asks"),
    ),
    max_size=60,
)


def test_nothing_is_recorded_until_somebody_follows() -> None:
    journal = ChangeJournal(lambda: "o")
    journal.record(TOPICS, "t")
    assert (journal.version, journal.is_followed) == (0, False)
    assert not journal.has("", 0)
    journal.follow()
    journal.record(TOPICS, "t")
    assert journal.version == 1
    assert [tuple(each) for each in journal.since(0, 10)] == [(TOPICS, "t", -1)]


def test_versions_of_another_start_are_unknown() -> None:
    journal = ChangeJournal(lambda: "new")
    journal.follow()
    assert journal.has("new", 0)
    assert not journal.has("old", 0)
    assert not journal.has("new", 1)


def test_only_definitions_are_told_at_once() -> None:
    told: list[int] = []
    journal = ChangeJournal(lambda: "o", on_definition=told.append)
    journal.follow()
    journal.record(OFFSETS, "t@g", 1)
    journal.record(GROUPS, "g")
    assert told == [2]


@given(STEPS, st.integers(1, 8), st.integers(1, 4))
def test_a_slave_that_applies_what_it_gets_has_the_masters_rows(
    steps: list[object], changes_max: int, at_once: int
) -> None:
    journal = ChangeJournal(lambda: "o", changes_max=changes_max)
    journal.follow()
    rows: dict[tuple[str, str], int] = {}
    copied: dict[tuple[str, str], int] = {}
    version = 0
    for number, step in enumerate([*steps, *["asks"] * (len(steps) + 1)]):
        if step != "asks":
            table, name = step  # type: ignore[misc]
            rows[table, name] = number
            journal.record(table, name)
        elif journal.has("o", version):
            for change in (some := journal.since(version, at_once)):
                copied[change[:2]] = rows[change[:2]]
            version += len(some)
        else:
            version, copied = journal.version, dict(rows)
    assert copied == rows


@given(
    st.dictionaries(st.sampled_from([TOPICS, GROUPS, OFFSETS]), st.lists(st.text(max_size=2))),
    st.integers(1, 5),
)
def test_the_pages_of_a_listing_are_its_rows(names: dict[str, list[str]], count: int) -> None:
    listing, at = Listing(names, 7), 0
    found: list[tuple[str, str]] = []
    while page := listing.page(at, count):
        assert len(page) <= count
        found += [change[:2] for change in page]
        at += len(page)
    assert at == len(listing)
    assert found == [(table, name) for table, each in names.items() for name in each]
