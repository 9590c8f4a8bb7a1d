"""A whole Spark over TLS: planner, tasks that read and tasks that write, with certificates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sprocket.remoting.tls.settings import TlsConfig
from tests.certificates import Authority
from tests.cli.parts import running_node, sprocket

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_tasks_write_and_read_with_a_certificate_of_their_own(
    spark: SparkSession, authority: Authority, tmp_path: Path
) -> None:
    server, mine = authority.issue("node"), authority.issue("spark")
    tls = TlsConfig(
        mode="enforcing",
        certificate=server.certificate,
        key=server.key,
        client_certificates="require",
        authorities=authority.path,
        outgoing_authorities=authority.path,
        outgoing_certificate=server.certificate,
        outgoing_key=server.key,
    )
    with running_node(str(tmp_path / "store"), tls) as names:
        options = {
            "namesrvAddr": names,
            "useTLS": "true",
            "tlsAuthorities": authority.path,
            "tlsCertificate": mine.certificate,
            "tlsKey": mine.key,
        }
        made = sprocket(
            "topic", "create", "orders", "-n", names, "--tls-authorities", authority.path,
            "--tls-certificate", mine.certificate, "--tls-key", mine.key,
        )  # fmt: skip
        assert made.code == 0, made.err
        rows = spark.range(500).selectExpr("cast(cast(id as string) as binary) as body")
        rows.write.format("rocketmq").mode("append").options(**options, topic="orders").save()
        read = spark.read.format("rocketmq").options(**options, subscribe="orders").load()
        found = sorted(int(row.body) for row in read.select("body").collect())
        assert found == list(range(500))

        stream = (
            spark.readStream.format("rocketmq")
            .options(**options, subscribe="orders", startingOffsets="earliest")
            .load()
            .select("body")
            .writeStream.format("memory")
            .queryName("secret")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert stream.awaitTermination(240)
        assert spark.table("secret").count() == 500
