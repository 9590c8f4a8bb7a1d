"""Metrics of several processes on one page."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.exposition import heading, line
from sprocket.metrics.merging import merged

NAMES = ("a_total", "b", "c")
VALUES = st.dictionaries(
    st.sampled_from(NAMES), st.lists(st.integers(0, 9), max_size=3), max_size=3
)


def page(process: str, values: dict[str, list[int]]) -> str:
    return "".join(
        heading(name, "gauge", "What # HELP b is.")
        + "".join(
            line(name, {"node": process, "text": f"# TYPE {n}\n"}, value)
            for n, value in enumerate(many)
        )
        for name, many in values.items()
    )


def test_values_of_one_metric_stand_together_under_one_heading() -> None:
    one = page("0", {"a_total": [1], "b": [2]})
    two = page("1", {"b": [3], "c": [4], "a_total": []})
    heads = [text.split()[2] for text in merged([one, two]).splitlines() if text.startswith("# H")]
    assert heads == ["a_total", "b", "c"]
    lines = merged([one, two]).splitlines()
    assert [text.partition("{")[0] for text in lines if not text.startswith("#")] == [
        "a_total", "b", "b", "c",
    ]  # fmt: skip


@given(st.lists(VALUES, max_size=4))
def test_no_value_is_lost_or_doubled(pages: list[dict[str, list[int]]]) -> None:
    texts = [page(str(number), values) for number, values in enumerate(pages)]
    before = sorted(each for text in texts for each in text.splitlines() if each[0] != "#")
    whole = merged(texts)
    assert sorted(each for each in whole.splitlines() if each[0] != "#") == before
    assert merged([whole]) == whole
    heads = [each for each in whole.splitlines() if each.startswith("# TYPE")]
    assert len(heads) == len(set(heads)) == len({name for values in pages for name in values})
