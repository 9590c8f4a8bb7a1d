"""Settings of the store."""

from __future__ import annotations

from dataclasses import fields

from sprocket.store.config import StoreConfig


def test_defaults_are_those_of_rocketmq() -> None:
    config = StoreConfig()
    assert config.log_file_bytes == 1_073_741_824
    assert config.queue_file_bytes == 6_000_000
    assert config.message_bytes_max == 4_194_304
    assert (config.flush, config.flush_interval_ms) == ("ASYNC_FLUSH", 500)


#: What RocketMQ has no setting for.
OURS = {"on_damage", "log_bytes_max"}


def test_every_setting_has_rocketmqs_name_and_a_sentence() -> None:
    for field in fields(StoreConfig):
        about = field.metadata["setting"]
        assert bool(about.rocketmq) != (field.name in OURS)
        assert about.doc
