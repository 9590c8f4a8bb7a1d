from __future__ import annotations

from sprocket.spark.worker import TaskCounter


def counted(tasks: int, **environment: str) -> int:
    times: list[int] = []
    here = TaskCounter(environment, lambda: times.append(1))
    for _ in range(tasks):
        here.task_begins()
    return len(times)


def test_modules_are_set_aside_once_and_not_before_all_of_them_are_there() -> None:
    assert [counted(tasks, SPARK_REUSE_WORKER="1") for tasks in (1, 2, 50)] == [0, 1, 1]


def test_a_process_that_is_no_worker_keeps_its_garbage_collection() -> None:
    assert counted(50) == 0
