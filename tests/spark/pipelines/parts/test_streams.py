from __future__ import annotations

import pytest

from sprocket.spark.pipelines.parts.streams import reason, trigger

WORKER = """\
Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times: Lost task 0.0
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "read.py", line 62, in batches
    raise ReadFailed(what)
sprocket.spark.reading.fetch.ReadFailed: orders@broker-a:0: offsets [0, 5) are gone

\tat org.apache.spark.api.python.BasePythonRunner: nothing
"""
PROXY = """\
An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
OSError: the disk is gone
 SQLSTATE: 39000
"""

QUERY = """\
Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times
org.apache.spark.SparkException: Python worker failed to connect back.
\tat org.apache.spark.api.python.PythonWorkerFactory.createSimpleWorker(Factory.scala:258)
=== Streaming Query ===
Identifier: [id = d01d8115, runId = 610a249f]
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WORKER, "orders@broker-a:0: offsets [0, 5) are gone"),
        (QUERY, "Python worker failed to connect back."),
        (PROXY, "OSError: the disk is gone"),
        ("[CANNOT_DO] It cannot be done.\nmore", "[CANNOT_DO] It cannot be done."),
        ("", "no reason was given"),
    ],
)
def test_a_failure_is_told_by_its_own_error(text: str, said: str) -> None:
    assert reason(text) == said


def test_a_query_goes_on_or_ends_with_what_is_there() -> None:
    for every_s, said in ((2.5, "2500"), (0.0, "0"), (1e-05, "0"), (1_000_000.0, "1000000000")):
        assert trigger(follows=True, every_s=every_s) == {"processingTime": f"{said} milliseconds"}
    assert trigger(follows=False, every_s=2.5) == {"availableNow": True}
