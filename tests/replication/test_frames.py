"""The frames of a replication connection, in any pieces."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import RemoteProtocolError
from sprocket.replication.frames import (
    FRAME_BYTES_MAX,
    HEAD,
    REPORT,
    Frame,
    FrameDecoder,
    ReportDecoder,
)

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "ha"

#: Where the recorded log ends.
RECORDED_END = 128_040

offsets = st.integers(0, 2**63 - 1)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(places)]


@given(st.lists(offsets, max_size=20), st.lists(st.integers(0, 1000), max_size=10))
def test_reports_come_out_as_they_went_in(reports: list[int], cuts: list[int]) -> None:
    decoder = ReportDecoder()
    data = b"".join(map(REPORT.pack, reports))
    assert [each for piece in pieces(data, cuts) for each in decoder.feed(piece)] == reports


@given(
    st.lists(st.builds(Frame, offsets, st.binary(max_size=100)), max_size=10),
    st.lists(st.integers(0, 2000), max_size=10),
)
def test_frames_come_out_as_they_went_in(frames: list[Frame], cuts: list[int]) -> None:
    decoder = FrameDecoder()
    data = b"".join(HEAD.pack(offset, len(data)) + data for offset, data in frames)
    assert [each for piece in pieces(data, cuts) for each in decoder.feed(piece)] == frames


def test_a_negative_report_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="reports log offset -1"):
        ReportDecoder().feed(REPORT.pack(5) + REPORT.pack(-1))


@pytest.mark.parametrize(
    ("offset", "size"), [(-1, 0), (0, -1), (0, FRAME_BYTES_MAX + 1), (7, 2**31 - 1)]
)
def test_a_head_that_no_master_sends_is_refused_at_once(offset: int, size: int) -> None:
    with pytest.raises(RemoteProtocolError, match="no frame of a master"):
        FrameDecoder().feed(HEAD.pack(offset, size))


@given(st.binary(max_size=200))
def test_no_bytes_break_a_decoder(data: bytes) -> None:
    for decoder in (FrameDecoder(), ReportDecoder()):
        try:
            decoder.feed(data)
        except RemoteProtocolError:
            continue


def recorded(name: str) -> bytes:
    return gzip.decompress((GOLDEN / name).read_bytes())


def test_the_recorded_stream_of_a_java_master_is_frames_without_a_rest() -> None:
    decoder = FrameDecoder()
    stream = recorded("master-to-slave.bin.gz")
    frames = [each for at in range(0, len(stream), 7) for each in decoder.feed(stream[at : at + 7])]
    assert sum(len(each.data) + HEAD.size for each in frames) == len(stream)
    at = 0
    for frame in frames:
        assert frame.offset == at
        assert len(frame.data) <= 32 * 1024
        at += len(frame.data)
    assert at == RECORDED_END


def test_the_recorded_reports_of_a_java_slave_rise_to_the_end() -> None:
    reports = ReportDecoder().feed(recorded("slave-to-master.bin.gz"))
    assert reports == sorted(reports)
    assert reports[0] == 0
    assert reports[-1] == RECORDED_END
