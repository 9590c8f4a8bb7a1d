"""The data source works through Spark Connect: batch, stream and writing."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sprocket.testing.node_thread import NodeThread

_NEEDED = ("pyspark", "grpc", "grpc_status", "pandas")
MISSING = [name for name in _NEEDED if importlib.util.find_spec(name) is None]


@pytest.mark.spark
@pytest.mark.process
@pytest.mark.skipif(bool(MISSING), reason=f"pip install 'pyspark[connect]': {MISSING} missing")
def test_a_topic_is_written_and_read_through_spark_connect(own_rocketmq: NodeThread) -> None:
    topic = own_rocketmq.topic("orders")
    done = subprocess.run(
        [
            sys.executable,
            Path(__file__).with_name("connect_job.py"),
            own_rocketmq.nameservers,
            topic,
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["kind"].startswith("pyspark.sql.connect")
    assert (found["table"], found["stream"]) == (["one", "two"], 2)
