"""Secrets in options of the source and the sink, searched for in all that Spark and we write."""

from __future__ import annotations

import contextlib
import io
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sprocket.base.errors import ConfigError
from sprocket.spark.options.options import BatchOptions, StreamOptions, read_options
from sprocket.spark.options.write_options import write_options
from sprocket.spark.pipelines.parts.servers import AccessKeys, Servers
from tests.cli.parts import running_node

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARK = "Hunter2"
SECRETS = {"secretKey": f"s-{MARK}", "securityToken": f"t-{MARK}", "tlsKeyPassword": f"p-{MARK}"}
OPTIONS = {"namesrvAddr": "127.0.0.1:1", "accessKey": "me", **SECRETS}


def test_options_show_no_secret() -> None:
    for kind in (BatchOptions, StreamOptions):
        assert MARK not in repr(read_options({**OPTIONS, "subscribe": "t"}, kind))
    assert MARK not in repr(write_options({**OPTIONS, "topic": "t"}))
    assert MARK not in repr(Servers("n:1", AccessKeys("me", f"s-{MARK}", f"t-{MARK}")))


@pytest.mark.parametrize("left_out", ["accessKey", "namesrvAddr", "subscribe"])
def test_no_error_about_options_shows_a_secret(left_out: str) -> None:
    given = {**OPTIONS, "subscribe": "t", "pullTimeoutMs": "soon"}
    given.pop(left_out)
    with pytest.raises(ConfigError) as raised:
        read_options(given, BatchOptions)
    assert MARK not in str(raised.value)


@pytest.mark.spark
def test_plans_logs_and_errors_of_spark_show_no_secret(spark: SparkSession, tmp_path: Path) -> None:
    written = io.StringIO()
    catching = logging.StreamHandler(written)
    root, before = logging.getLogger(), logging.getLogger().level
    root.addHandler(catching)
    root.setLevel(logging.DEBUG)
    try:
        with (
            contextlib.redirect_stdout(written),
            contextlib.redirect_stderr(written),
            running_node(str(tmp_path / "store")) as names,
        ):
            options = {**OPTIONS, "namesrvAddr": names}
            rows = spark.range(3).selectExpr("cast(cast(id as string) as binary) as body")
            rows.write.format("rocketmq").mode("append").options(**options, topic="t").save()
            read = spark.read.format("rocketmq").options(**options, subscribe="t").load()
            for mode in ("extended", "cost", "formatted"):
                read.explain(mode=mode)
            assert read.count() == 3
            for wrong in ({"subscribe": "none"}, {"assign": "t"}, {"topic": "t"}):
                with pytest.raises(Exception) as raised:  # noqa: PT011 # any class of Spark's
                    spark.read.format("rocketmq").options(**options, **wrong).load().count()
                written.write(str(raised.value))
    finally:
        root.removeHandler(catching)
        root.setLevel(before)
    assert "BatchScan rocketmq" in written.getvalue()
    assert MARK not in written.getvalue()
