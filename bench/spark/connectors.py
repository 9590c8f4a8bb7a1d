"""How each connector is spoken to: the same rows in, the same columns out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

#: Hex digits, distinct in every row; 128 of them cost one hash.
_LETTERS = "sha2(cast(id * {most} + {part} as string), 512)"


class Source(NamedTuple):
    """A topic of a server.

    Attributes:
        kind: `sprocket` or `kafka`.
        address: of its name server or broker.
        topic: which.
        options: more of the connector's options.
    """

    kind: str
    address: str
    topic: str
    options: Mapping[str, str]


class Connector(Protocol):
    """What a case needs of a connector; `spark` is a session."""

    def reader(self, reader: Any, source: Source) -> Any: ...
    def writer(self, rows: Any, source: Source) -> Any: ...


def letters(size: int) -> str:
    """A SQL expression: `size` hex digits that differ from row to row."""
    most = -(-size // 128)
    parts = ", ".join(_LETTERS.format(most=most, part=part) for part in range(most))
    return f"substring(concat({parts}), 1, {size})"


class SprocketConnector:
    """`format("rocketmq")`, with the columns that Kafka's connector has too."""

    columns = (
        "key string, body binary, topic string, queue_id int, queue_offset bigint, "
        "store_timestamp timestamp, properties map<string,string>"
    )

    def reader(self, reader: Any, source: Source) -> Any:
        named = {"subscribe": source.topic, **source.options}
        if "store" not in named:  # a broker is asked
            named = {"namesrvAddr": source.address, "startingOffsets": "earliest", **named}
        columns = named.pop("columns", self.columns)
        if columns:
            reader = reader.schema(columns)
        return reader.format("rocketmq").options(**named).load()

    def writer(self, rows: Any, source: Source) -> Any:
        return rows.write.format("rocketmq").options(
            namesrvAddr=source.address, topic=source.topic, **source.options
        )

    def rows(self, ids: Any, size: int) -> Any:
        return ids.selectExpr(
            "lpad(cast(id as string), 12, '0') as key", "'paid' as tag", f"{letters(size)} as body"
        )


class KafkaConnector:
    """`format("kafka")`, with headers; the two that our messages carry as properties."""

    def reader(self, reader: Any, source: Source) -> Any:
        named = {
            "kafka.bootstrap.servers": source.address,
            "subscribe": source.topic,
            "includeHeaders": "true",
            "startingOffsets": "earliest",
            **source.options,
        }
        frame = reader.format("kafka").options(**named).load()
        return frame.select("key", "value", "topic", "partition", "offset", "timestamp", "headers")

    def writer(self, rows: Any, source: Source) -> Any:
        named = {"kafka.bootstrap.servers": source.address, "topic": source.topic}
        return rows.write.format("kafka").options(**named, **source.options)

    def rows(self, ids: Any, size: int) -> Any:
        return ids.selectExpr(
            "lpad(cast(id as string), 12, '0') as key",
            f"{letters(size)} as value",
            "array(struct('TAGS' as key, cast('paid' as binary) as value), struct('UNIQ_KEY' as "
            "key, cast(substring(sha2(cast(id as string), 256), 1, 32) as binary) as value)) "
            "as headers",
        )


CONNECTORS: Mapping[str, Any] = {"sprocket": SprocketConnector(), "kafka": KafkaConnector()}
