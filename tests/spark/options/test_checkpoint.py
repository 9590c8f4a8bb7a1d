from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import UsageError
from sprocket.clientcore.witness import Witness
from sprocket.message.queue import QueueId
from sprocket.spark.options.checkpoint import (
    StreamOffsets,
    read_checkpoint,
    shape_checkpoint,
)
from sprocket.spark.options.positions import Position, PositionKind, format_offsets, parse_offsets

A0 = QueueId("orders", "broker-a", 0)
_QUEUES = st.builds(
    QueueId, st.sampled_from(["orders", "%RETRY%g"]), st.sampled_from("ab"), st.integers(0, 3)
)
_NUMBERS = st.integers(0, 2**63 - 1)
_OFFSETS = st.dictionaries(_QUEUES, _NUMBERS)
_WITNESSES = st.dictionaries(_QUEUES, st.builds(Witness, _NUMBERS, _NUMBERS, _NUMBERS))


@given(_OFFSETS, _WITNESSES, _OFFSETS)
def test_a_checkpoint_gives_back_what_it_keeps(
    offsets: dict[QueueId, int], witnesses: dict[QueueId, Witness], anew: dict[QueueId, int]
) -> None:
    kept = StreamOffsets(offsets, witnesses, anew)
    text = json.dumps(shape_checkpoint(kept))
    assert read_checkpoint(json.loads(text)) == kept
    # Spark compares the texts to find out whether there is anything new.
    assert json.dumps(shape_checkpoint(read_checkpoint(json.loads(text)))) == text


def test_a_checkpoint_of_an_earlier_version_has_no_witnesses() -> None:
    shape = {"orders": {"broker-a": {"0": 17}}}
    assert read_checkpoint(shape) == StreamOffsets({A0: 17})
    assert shape_checkpoint(StreamOffsets({A0: 17})) == shape


def test_what_a_checkpoint_holds_can_be_given_as_a_start() -> None:
    witness = Witness(16, 4711, 1_700_000_000_000)
    text = format_offsets({A0: 17}, {A0: witness})
    found = parse_offsets("startingOffsets", text, words=())
    assert found.of(A0) == Position(PositionKind.OFFSET, 17)
    assert found.witnesses == {A0: witness}


@pytest.mark.parametrize(
    "read", ['{"orders": {"b": {"0": [1, 2]}}}', "7", '{"o": {"b": {"x": 1}}}']
)
def test_witnesses_of_another_shape_are_refused(read: str) -> None:
    with pytest.raises(UsageError, match="startingOffsets: :read"):
        parse_offsets("startingOffsets", f'{{":read": {read}}}', words=())
