"""The judge of a soak finds what it is there to find."""

from __future__ import annotations

from tests.soak.judge import Judge


def judged(*lines: str) -> Judge:
    judge = Judge()
    judge.read(f"{line}\n" for line in lines)
    return judge


def test_what_was_acknowledged_and_never_consumed_is_lost() -> None:
    judge = judged(
        *("send 1.0 any p-1", "ack 1.1 any p-1 b:0", "send 1.0 any p-2", "fail 1.2 any p-2"),
        *("send 1.0 any p-3", "ack 1.1 any p-3 b:0"),
        *("begin 2.0 any c b:0 0 p-1 0", "end 2.1 any c b:0 0 p-1 0"),
    )
    assert not judge.is_done
    figures = judge.figures(since=0.0, until=3.0)["any"]
    assert (figures.sent, figures.failed, figures.acknowledged, figures.lost) == (3, 1, 2, 1)
    assert figures.lost_keys == ["p-3"]


def test_what_is_consumed_again_is_a_duplicate_and_a_failed_try_is_none() -> None:
    judge = judged(
        *("begin 1.0 any c b:0 0 p-1 0", "begin 2.0 any c b:0 5 p-1 1"),
        *("end 2.1 any c b:0 5 p-1 1", "begin 3.0 any d b:0 5 p-1 1", "end 3.1 any d b:0 5 p-1 1"),
    )
    figures = judge.figures(since=0.0, until=4.0)["any"]
    assert (figures.consumed, figures.duplicated, figures.given_back) == (1, 1, 1)


def test_a_message_before_its_predecessor_is_done_is_out_of_order() -> None:
    judge = judged(
        *("begin 1.0 ordered c b:0 0 p-1 0", "begin 1.5 ordered c b:0 1 p-2 0"),
        *("end 2.0 ordered c b:0 0 p-1 0", "end 2.1 ordered c b:0 1 p-2 0"),
        *("begin 3.0 ordered d b:0 2 p-3 0", "end 3.1 ordered d b:0 2 p-3 0"),
    )
    figures = judge.figures(since=0.0, until=4.0)["ordered"]
    assert (figures.unordered, figures.overlapping) == (1, 0)


def test_two_members_at_one_queue_overlap_unless_one_was_killed() -> None:
    lines = ("begin 1.0 ordered c b:0 0 p-1 0", "begin 2.0 ordered d b:0 0 p-1 0")
    assert judged(*lines).figures(since=0.0, until=4.0)["ordered"].overlapping == 1
    judge = judged(*lines)
    judge.gone("c", 1.5, is_killed=True)
    assert judge.figures(since=0.0, until=4.0)["ordered"].overlapping == 0


def test_a_gap_is_the_time_that_nobody_says_it_has_the_queue() -> None:
    judge = judged("has 1.0 any c b:0", "has 1.25 any c b:0", "has 4.0 any d b:0,b:1")
    judge.gone("c", 1.5, is_killed=True)
    assert judge.figures(since=1.0, until=4.5)["any"].longest_gap == 3.0
    assert judged("has 1.0 any c b:0").figures(since=1.0, until=1.5)["any"].longest_gap == 0.0


def test_a_line_that_was_cut_off_by_a_kill_counts_for_nothing() -> None:
    judge = Judge()
    judge.read(["send 1.0 any p-1\n", "ack 1.1 any p"])
    assert judge.counts["any"] == (1, 0, 0)
