"""The options of `.option(…)` for writing, checked once and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sprocket.base.errors import ConfigError
from sprocket.message.properties import DELAY_LEVEL_MAX
from sprocket.spark.options import values
from sprocket.spark.options.body_options import BodyOptions
from sprocket.spark.options.credentials import NO_SERVERS, Credentials, with_servers
from sprocket.spark.options.declare import option, parse

#: Options that Spark adds itself for streams.
_SPARKS_OWN = {"checkpointlocation", "queryname", "outputmode"}


@dataclass(frozen=True)
class WriteOptions(Credentials, BodyOptions):
    """Options of writes."""

    nameservers: tuple[str, ...] = option(
        "namesrvAddr",
        values.addresses,
        "Name servers, `host:port;host:port`. Required.",
        default=(),
    )
    topic: str | None = option(
        "topic", values.topic, "Topic of messages without a column `topic`, or with null there."
    )
    tag: str | None = option(
        "tag", values.text, "Tag of messages without a column `tag`, or with null there."
    )
    delay_level: int = option(
        "delayLevel",
        values.whole(0, DELAY_LEVEL_MAX),
        "Delay of messages that have no column `delay_level`: 0 for none, 1 to 18.",
        default=0,
    )
    queue_by: str = option(
        "queueBy",
        values.queue_choice,
        "Which queue takes a message without a column `queue_id`: `turn` for one after the other, "
        "`key` for one by the hash of its key, the same as from Java's SelectMessageQueueByHash.",
        default="turn",
    )
    id_property: str | None = option(
        "idempotencyProperty",
        values.property_name,
        "Name of a property that gets a text which is the same when a task is run again: consumers "
        "can drop repeats by it.",
    )
    transaction_brokers: tuple[str, ...] = option(
        "transactionBrokers",
        values.brokers,
        "Names of the brokers that get the rows, `broker-a,broker-b`, and show those of a "
        "micro-batch or of a batch write exactly once, when all are there. The first one decides, "
        "so it must stay the first. Without this, rows are seen as they come, at least once.",
        default=(),
    )
    transaction_begin: int | None = option(
        "transactionBegin",
        values.whole(0, 2**62),
        "Number of a micro-batch with which a stream may begin at the first of transactionBrokers "
        "if that knows nothing of it; 0 always may.",
    )
    group: str = option(
        "group", values.group, "Producer group in requests to brokers.", default="sprocket-spark"
    )
    records_asked: int | None = option(
        "batchMaxRecords",
        values.whole(1, 10_000),
        "Most messages in one request. 1 for brokers that take no batches. 256 if it is not given, "
        "with transactionBrokers 512.",
    )
    batch_bytes: int = option(
        "batchMaxBytes",
        values.whole(1024, 4 * 1024 * 1024),
        "Most bytes in one request of several messages.",
        default=512 * 1024,
    )
    timeout_ms: int = option(
        "sendTimeoutMs",
        values.milliseconds(1, 600_000),
        "Longest wait for a reply, ms.",
        default=10_000,
    )
    retries: int = option(
        "sendRetries",
        values.whole(0, 1000),
        "How many times in a row a request is sent again before the task fails.",
        default=10,
    )

    @property
    def batch_records(self) -> int:
        """Most messages in one request."""
        usual = 512 if self.transaction_brokers else 256
        return usual if self.records_asked is None else self.records_asked

    def check_transaction(self) -> None:
        """Raises ConfigError where an option does not go with `transactionBrokers`, or needs it."""
        if not self.transaction_brokers:
            if self.transaction_begin is not None:
                raise ConfigError("option transactionBegin goes with transactionBrokers")
        elif self.delay_level:
            raise ConfigError("option delayLevel: rows of transactionBrokers cannot have a delay")


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """The options of a write.

    Raises:
        ConfigError: an option is unknown, ill-typed or missing.
    """
    ours = {name: value for name, value in given.items() if name.lower() not in _SPARKS_OWN}
    options = with_servers(parse(ours, kind=WriteOptions, others=(), reads="writing"))
    if not options.nameservers:
        raise ConfigError(NO_SERVERS)
    options.check_credentials()
    options.check_bodies()
    options.check_transaction()
    return options
