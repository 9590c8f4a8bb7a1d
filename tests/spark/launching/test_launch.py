from __future__ import annotations

import importlib.util
import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

from sprocket.base.errors import UsageError
from sprocket.spark.launching import launch
from sprocket.spark.launching.launch import check_pyspark, local_cores, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_local_master_is_told_from_a_cluster() -> None:
    assert local_cores("local") == 1
    assert local_cores("local[3]") == 3
    assert local_cores("local[2,4]") == 2
    assert local_cores("local[*]") == os.cpu_count()
    assert local_cores("spark://host:7077") is None
    assert local_cores("local-cluster[2,1,1024]") is None


def test_settings_can_be_keywords_and_go_before_ours() -> None:
    found = settings("local[2]", {"spark_driver_memory": "4g", "spark.ui.enabled": True})
    assert found["spark.driver.memory"] == "4g"
    assert found["spark.ui.enabled"] == "true"
    assert found["spark.sql.shuffle.partitions"] == "2"
    assert "spark.sql.shuffle.partitions" not in settings("yarn", {})
    options = settings("local", {"spark.driver.extraJavaOptions": "-Xss4m"})
    assert re.search("log4j2.* -Xss4m$", options["spark.driver.extraJavaOptions"])
    with pytest.raises(UsageError, match="driver_memory"):
        settings("local", {"driver_memory": "4g"})


def test_what_is_missing_or_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark = pytest.importorskip("pyspark")
    monkeypatch.setattr(pyspark, "__version__", "3.5.1")
    with pytest.raises(UsageError, match=r"3\.5\.1 is too old"):
        check_pyspark()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pyspark is missing.*sprocketmq\[spark\]"):
        check_pyspark()


def who(_: int) -> tuple[str, str]:
    import pyspark

    return sys.executable, pyspark.__file__


@pytest.mark.spark
def test_a_session_is_quiet_and_uses_this_interpreter(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.ui.enabled") == "false"
    checkpoints = spark.conf.get("spark.sql.streaming.checkpointFileManagerClass")
    assert checkpoints.endswith(".FileSystemBasedCheckpointFileManager")
    python, pyspark = spark.sparkContext.parallelize([0], 1).map(who).first()
    assert python == sys.executable
    assert "pyspark.zip" not in pyspark
    assert launch.session("another", "local[2]") is spark
