from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource", reason="streams need PySpark 4.2")

from sprocket.base.errors import UsageError
from tests.spark.killing_sink import play

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.timeout(3600)]


def test_rows_of_a_stream_that_is_killed_are_there_once(tmp_path: Path) -> None:
    """The longer form is `python -m tests.spark.killing_sink`."""
    from sprocket.spark.launching.java import find_java

    try:
        find_java()
    except UsageError as error:
        pytest.skip(str(error))
    kills = 9 if os.environ.get("SPROCKET_LONG") else 1
    killed = play(tmp_path, kills=kills, seed=5, messages=900 * kills)
    assert min(killed[one] for one in ("driver", "workers", "broker")) > 0
