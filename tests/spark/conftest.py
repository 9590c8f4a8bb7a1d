"""One Spark session for all tests of this folder that need one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from sprocket.base.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session of two cores; skips where PySpark or Java is missing, and says which.

    It writes an event log, in which tests search for secrets.
    """
    from sprocket.spark.launching.java import find_java
    from sprocket.spark.launching.launch import check_pyspark, session

    try:
        check_pyspark()
        find_java()
    except UsageError as error:
        pytest.skip(str(error))
    # Java's better compiler would take longer than it saves here.
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    events = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": tmp_path_factory.mktemp("events").as_uri(),
    }
    made = session("tests", "local[2]", **quick, **events)
    yield made
    made.stop()
