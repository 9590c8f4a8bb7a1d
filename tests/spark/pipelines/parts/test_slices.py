from __future__ import annotations

from typing import Any, cast

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'sprocketmq[spark]'")

from sprocket.base.errors import UsageError
from sprocket.message.queue import QueueId
from sprocket.spark.pipelines.parts.progress import Progress, unwatched
from sprocket.spark.pipelines.parts.slices import SliceProgress, Slices, WorkUnit

A = QueueId("t", "a", 0)
B = QueueId("t", "b", 0)


class FakeFolder:
    """Files that are only a table."""

    def __init__(self) -> None:
        self.files: dict[str, Any] = {}

    def read(self, name: str) -> Any:
        return self.files.get(name)

    def replace(self, name: str, value: Any) -> None:
        self.files[name] = value


def memory(folder: FakeFolder, job: str = "job") -> SliceProgress:
    return SliceProgress(cast(Any, folder), job)


def unit(number: int, start: dict[QueueId, int], end: dict[QueueId, int]) -> WorkUnit:
    """One whose rows are the ranges themselves."""
    return WorkUnit(
        number, start, end, lambda low, high: cast(Any, {q: (low[q], high[q]) for q in high})
    )


def count(rows: Any) -> int:
    return sum(high - low for low, high in rows.values())


def run(
    folder: FakeFolder, units: list[WorkUnit], *, fails_at: int = -1, rows: int = 4
) -> list[Any]:
    done: list[Any] = []

    def act(some: Any) -> int:
        if len(done) == fails_at:
            raise OSError("gone")
        done.append(some)
        return count(some)

    slices = Slices(memory(folder), rows=rows, rate=None, watch=unwatched)
    assert slices.run(units, act)
    return done


def test_every_offset_is_in_one_slice_and_none_is_larger_than_asked() -> None:
    done = run(FakeFolder(), [unit(0, {A: 0, B: 5}, {A: 10, B: 8}), unit(3, {A: 10}, {A: 11})])
    assert [count(one) for one in done] == [4, 4, 4, 1, 1]
    seen = [
        (queue, at) for one in done for queue, (low, high) in one.items() for at in range(low, high)
    ]
    assert sorted(seen) == [*((A, at) for at in range(11)), *((B, at) for at in range(5, 8))]


def test_what_failed_is_done_again_and_nothing_else() -> None:
    folder = FakeFolder()
    units = [unit(0, {A: 0}, {A: 8}), unit(1, {A: 8}, {A: 20})]
    with pytest.raises(OSError, match="gone"):
        run(folder, units, fails_at=3)
    assert memory(folder).rows == 12
    assert [one[A] for one in run(folder, units)] == [(12, 16), (16, 20)]
    assert run(folder, units) == []
    assert memory(folder).rows == 20


def test_what_was_lost_between_two_runs_is_asked_for_all_the_same() -> None:
    folder = FakeFolder()
    run(folder, [unit(0, {A: 0}, {A: 4})])
    assert [one[A] for one in run(folder, [unit(0, {A: 9}, {A: 12})], rows=100)] == [(4, 12)]


def test_a_folder_remembers_one_job() -> None:
    folder = FakeFolder()
    run(folder, [unit(0, {A: 0}, {A: 4})])
    with pytest.raises(UsageError, match="another job"):
        memory(folder, "other")


def test_a_rate_holds_slices_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    told: list[tuple[float, Progress]] = []
    slices = Slices(
        memory(FakeFolder()), rows=1000, rate=5.0, watch=lambda one: told.append((now[0], one))
    )
    assert slices.run([unit(0, {A: 0}, {A: 25})], count)
    assert [one.rows for _, one in told] == [10, 20, 25]
    assert [round(at) for at, _ in told] == [100, 102, 104]
