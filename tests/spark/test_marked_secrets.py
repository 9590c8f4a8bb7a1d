"""Secrets in options of the source and the sink, searched for in all that Spark and we write."""

from __future__ import annotations

import contextlib
import io
import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from sprocket.base.errors import ConfigError
from sprocket.broker.config import BrokerConfig
from sprocket.remoting.tls.settings import TlsConfig
from sprocket.spark.options.options import BatchOptions, StreamOptions, read_options
from sprocket.spark.options.write_options import write_options
from sprocket.spark.pipelines.parts.servers import AccessKeys, Servers
from tests.certificates import Authority, Issued
from tests.cli.closed import INNER
from tests.cli.parts import running_node
from tests.schemas.serving import registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARK = "Hunter2"
SECRETS = {"secretKey": f"s-{MARK}", "securityToken": f"t-{MARK}", "tlsKeyPassword": f"p-{MARK}"}
#: What a registry of schemas is asked as: `me` with the password `r-Hunter2`.
ASKED = f"Basic {b64encode(f'me:r-{MARK}'.encode()).decode()}"
OPTIONS = {"namesrvAddr": "127.0.0.1:1", "accessKey": "me", "useTLS": "true", **SECRETS}


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
@pytest.mark.parametrize("by_profile", [False, True], ids=["options", "profile"])
def test_nothing_that_spark_writes_has_a_secret(
    spark: SparkSession, authority: Authority, tmp_path: Path, *, by_profile: bool
) -> None:
    """A user over TLS with an encrypted key, and a user of a registry, known by a mark: reads,
    writes and streams.
    """
    server, mine = authority.issue("node"), authority.issue("spark", password=f"p-{MARK}")
    access = {
        "accessKey": "root",
        "secretKey": f"s-{MARK}",
        "useTLS": "true",
        "tlsAuthorities": authority.path,
        "tlsCertificate": mine.certificate,
        "tlsKey": mine.key,
        "tlsKeyPassword": f"p-{MARK}",
    }
    with (
        spark_logs() as written,
        registry() as schemas,
        running_node(str(tmp_path / "store"), *closed(server)) as names,
    ):
        answer = {"schema": '{"properties": {"n": {"type": "integer"}}}', "schemaType": "JSON"}
        schemas.by_path["/schemas/ids/1"] = (200, answer)
        options = {"namesrvAddr": names, **access}
        asks = {"schemaRegistryUser": "me", "schemaRegistryPassword": f"r-{MARK}"}
        asks["schemaRegistry"] = schemas.url
        if by_profile:
            options = {"profile": "here", "configFile": profile_file(tmp_path, options | asks)}
            asks = {"schemaRegistry": "profile"}
        bodies = {**options, **asks, "bodyFormat": "json", "schemaSubject": "1"}
        rows = spark.range(300).selectExpr("named_struct('n', id) as value")
        rows.write.format("rocketmq").mode("append").options(**bodies, topic="t").save()
        read = spark.read.format("rocketmq").options(**bodies, subscribe="t").load()
        read = read.where("value.n >= 0")
        for mode in ("extended", "cost", "formatted"):
            read.explain(mode=mode)
        assert read.count() == 300
        query = (
            spark.readStream.format("rocketmq")
            .options(**options, subscribe="t", startingOffsets="earliest")
            .load()
            .select("body")
            .writeStream.format("rocketmq")
            .options(**options, topic="copy", checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(240)
        query.explain(extended=True)
        written.write("".join(str(one) for one in query.recentProgress))
        copied = spark.read.format("rocketmq").options(**options, subscribe="copy").load()
        assert copied.count() == 300
        assert {head["Authorization"] for _, head in schemas.asked} == {ASKED}
        for wrong in ({"subscribe": "none"}, {"assign": "t"}, {"topic": "t"}):
            with pytest.raises(Exception) as raised:  # noqa: PT011 # any class of Spark's
                spark.read.format("rocketmq").options(**options, **wrong).load().count()
            written.write(str(raised.value))
    assert "BatchScan rocketmq" in written.getvalue()
    assert MARK not in written.getvalue()
    events = Path(urlsplit(spark.conf.get("spark.eventLog.dir") or "").path)
    for folder, has in ((events, b"rocketmq"), (tmp_path / "checkpoint", b"broker-a")):
        files = [one.read_bytes() for one in folder.rglob("*") if one.is_file()]
        assert any(has in content for content in files)
        assert not any(MARK.encode() in content for content in files)


@contextlib.contextmanager
def spark_logs() -> Iterator[io.StringIO]:
    """What is printed, and what Python's loggers write at every level."""
    written = io.StringIO()
    catching = logging.StreamHandler(written)
    root, before = logging.getLogger(), logging.getLogger().level
    root.addHandler(catching)
    root.setLevel(logging.DEBUG)
    try:
        with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
            yield written
    finally:
        root.removeHandler(catching)
        root.setLevel(before)


def closed(server: Issued) -> tuple[TlsConfig, BrokerConfig]:
    """A node that takes TLS only, and the user root only."""
    tls = TlsConfig(
        mode="enforcing",
        certificate=server.certificate,
        key=server.key,
        client_certificates="require",
        authorities=(authority := str(Path(server.certificate).with_name("ca.pem"))),
        outgoing_authorities=authority,
        outgoing_certificate=server.certificate,
        outgoing_key=server.key,
    )
    root = json.dumps({"username": "root", "password": f"s-{MARK}"})
    return tls, BrokerConfig(
        port=0, authentication=True, authorization=True, first_user=root, inner_keys=INNER
    )


def profile_file(folder: Path, options: dict[str, str]) -> str:
    """A file with these options as a profile."""
    names = {
        "namesrvAddr": "nameservers",
        "accessKey": "access_key",
        "secretKey": "secret_key",
        "tlsAuthorities": "tls_authorities",
        "tlsCertificate": "tls_certificate",
        "tlsKey": "tls_key",
        "tlsKeyPassword": "tls_key_password",
        "schemaRegistry": "registry",
        "schemaRegistryUser": "registry_user",
        "schemaRegistryPassword": "registry_password",
    }
    lines = [f"{name} = {json.dumps(options[option])}" for option, name in names.items()]
    file = folder / "sprocket.toml"
    file.write_text("\n".join(["[profile.here]", "tls = true", *lines]))
    file.chmod(0o600)
    return str(file)
