"""Events of trace messages of RocketMQ's clients, old and new."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.message.traces import FIELDS, events_of

#: As Java's clients of 4.9 and 5.x write them.
PUB = (
    "Pub\x011700000000000\x01DefaultRegion\x01shop\x01orders\x017F01\x01paid\x01o-1 o-2\x01"
    "10.0.0.1:10911\x0110\x013\x010\x017F00000100002A9F0000000000000A1C\x01true\x02"
)
OLD_PUB = (
    "Pub\x011700000000001\x01null\x01shop\x01orders\x017F02\x01\x01null\x01"
    "10.0.0.1:10911\x0110\x0130\x010\x01false\x02"
)
BATCH = PUB.replace("7F01", "7F03,7F01")
BEFORE = "SubBefore\x011700000000020\x01null\x01billing\x01AC11\x017F01\x012\x01o-1 o-2\x02"
AFTER = "SubAfter\x01AC11\x017F01\x015\x01true\x01o-1 o-2\x010\x011700000000025\x01billing\x02"


def test_events_have_their_fields_by_name_whatever_their_age() -> None:
    ((kind, fields),) = events_of(PUB.encode(), "7F01")
    assert (kind, fields["group"], fields["offset_id"]) == (
        "Pub", "shop", "7F00000100002A9F0000000000000A1C",
    )  # fmt: skip
    assert fields["is_ok"] == "true"
    ((_, old),) = events_of(OLD_PUB.encode(), "7F02")
    assert (old["cost_ms"], old["is_ok"]) == ("30", "false")
    assert not {"tag", "keys", "region", "offset_id"} & old.keys()


def test_only_events_of_the_message_are_given() -> None:
    body = (PUB + OLD_PUB + BATCH + BEFORE + AFTER).encode()
    assert [kind for kind, _ in events_of(body, "7F01")] == ["Pub", "Pub", "SubBefore", "SubAfter"]
    assert [kind for kind, _ in events_of(body, "7F02")] == ["Pub"]
    assert [*events_of(body, "7F")] == []


@given(
    st.lists(
        st.sampled_from([*FIELDS, "\x01", "\x02", "id", ",", "null", "\xff", "1", "x"]), max_size=40
    ),
    st.binary(max_size=10),
)
def test_anything_is_read_without_an_error(parts: list[str], more: bytes) -> None:
    for kind, fields in events_of("".join(parts).encode("latin-1") + more, "id"):
        assert set(fields) <= set(FIELDS[kind])
        assert "id" in fields["message_id"].split(",")
