from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.spark.pipelines.tables.compaction import chosen
from sprocket.spark.pipelines.tables.table import TableFile


def _file(at: int, size: int, partition: str = "a") -> TableFile:
    return TableFile(f"data/{at}.parquet", size, at, 1, {"p": partition}, {})


def test_small_files_of_a_partition_become_one_as_large_as_is_wanted() -> None:
    files = [_file(0, 40), _file(1, 100), _file(2, 50), _file(3, 20), _file(4, 10, "b")]
    found = chosen(files, whole_size=100, most=10)
    assert found is not None
    assert [one.name for one in found] == ["data/0.parquet", "data/2.parquet"]


def test_alone_or_large_files_stay() -> None:
    assert chosen([]) is None
    assert chosen([_file(0, 5), _file(1, 5, "b"), _file(2, 200)], whole_size=100) is None


@given(
    st.lists(st.tuples(st.integers(1, 120), st.sampled_from("abc")), max_size=40),
    st.integers(2, 10),
)
def test_rounds_end_and_lose_nothing(sizes: list[tuple[int, str]], most: int) -> None:
    files = [_file(at, size, partition) for at, (size, partition) in enumerate(sizes)]
    whole = sum(one.size for one in files)
    for number in range(1000, 2000):
        found = chosen(files, whole_size=100, most=most)
        if found is None:
            break
        assert len(found) <= most
        merged: dict[object, int] = {}
        for one in found:
            merged[one.partition["p"]] = merged.get(one.partition["p"], 0) + one.size
        assert max(merged.values()) <= 100
        files = [one for one in files if one not in found]
        files += [_file(number, size, str(name)) for name, size in merged.items()]
    else:
        raise AssertionError("it never ends")
    assert sum(one.size for one in files) == whole
