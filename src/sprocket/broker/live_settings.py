"""Which settings of a broker have effect at once when they change, and why the others do not.

Pure. Each setting is in one of the two tables; a new one is refused while the broker runs until
somebody says here that all that uses it reads the new value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sprocket.base.config import Declared, settings_of
from sprocket.broker.config import BrokerConfig
from sprocket.store.config import StoreConfig

#: The state file of settings that were changed while the broker ran.
CHANGED_FILE = "changedSettings.json"

#: Settings that are read at each use, or told to what was made with the old value.
LIVE = frozenset(
    f"broker.{name}"
    for name in (
        "permission", "auto_create_topics", "auto_create_groups", "notify_members",
        "client_expiry_ms", "client_scan_ms", "long_polling", "short_polling_ms",
        "held_pulls_max", "pull_count_max", "pull_bytes_max", "pull_asked_count_max",
        "pull_asked_bytes_max", "lite_pull", "sql_filters", "server_side_reset",
        "flush_timeout_ms", "offset_save_ms", "delay_save_ms", "registration_ms",
        "registration_timeout_ms", "reject_transactions", "transaction_timeout_ms",
        "transaction_check_ms", "transaction_checks_max", "transactions_max", "recall",
        "topics_max", "groups_max", "drain_ms", "slave_timeout_ms", "slave_reads",
        "memory_percent", "pop_retry_v2", "pop_retry_percent", "held_pops_max",
        "held_pops_queue_max", "quotas", "request_mode", "pop_share_queues", "server_rebalance",
        "pop_priority_retry_percent", "priority_ascending", "lite_topics_max",
        "lite_subscriptions_max", "lite_subscription_expiry_ms", "lite_check_ms",
        "lite_kept_ms_min", "mixed_message_type", "copies", "copies_min", "copies_follow_sync",
        "copies_gap_bytes", "copies_behind_ms", "replication_heartbeat_ms",
        "replication_silence_ms", "replication_batch_bytes", "replication_limit",
        "replication_bytes_per_second", "nameservers", "template_queues", "trace_topic", "region",
        "trace_on", "kernel", "lock_lease_ms", "members_max", "offsets_max",
    )
) | frozenset(
    f"store.{name}"
    for name in (
        "message_bytes_max", "flush_interval_ms", "flush_least_pages",
        "flush_thorough_interval_ms", "queue_flush_interval_ms", "disk_full_percent",
        "kept_hours", "log_bytes_max", "files_removed_max", "delete_hours",
        "disk_used_percent", "may_force", "disk_check_interval_ms", "disk_forced_percent",
        "read_ahead", "timer_delay_seconds_max", "timer_roll_slots", "timer_flush_interval_ms",
    )
)  # fmt: skip

_NAME = "clients, name servers and the other brokers know the broker by it"
_ROLE = "what the broker is in its group is decided at its start"
_PORT = "the broker listens already"
_FILES = "the files of the store were made with it"
_FILTERS = "processes of filters in Python were started with it"
_CHECKED = "whether and how requests are checked is decided at the start"
_START = "it only says how the broker starts"
_AUDIT = "what is recorded goes to that topic from the start on"
_TOPIC = "that topic exists: `sprocket topic update` changes it"

#: By `part.name`, why a setting cannot change while the broker runs.
FIXED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "broker.cluster", "broker.name", "broker.advertised_host",
        ),
        _NAME,
    ),
    **dict.fromkeys(
        (
            "broker.id", "broker.role", "broker.acting_master", "broker.remote_escape",
            "broker.replication_master", "broker.elector", "broker.elector_password",
            "broker.elector_ca", "broker.elector_cert", "broker.elector_key",
            "broker.controller_mode", "broker.controllers", "broker.controller_heartbeat_ms",
            "broker.controller_silence_ms", "broker.all_acknowledge", "broker.lease_ms",
            "broker.elect_unclean", "broker.election_priority",
        ),
        _ROLE,
    ),
    **dict.fromkeys(
        ("broker.host", "broker.port", "broker.replication_port", "broker.connections_max"), _PORT
    ),
    **dict.fromkeys(
        (
            "broker.revive_queues", "store.path", "store.log_paths", "store.log_read_only_paths",
            "store.log_file_bytes", "store.queue_file_bytes", "store.batch_queue_file_bytes",
            "store.index_slots", "store.index_entries", "store.timer_slot_ms",
            "store.timer_file_bytes",
        ),
        _FILES,
    ),
    **dict.fromkeys(
        (
            "broker.filter_workers", "broker.filter_uploaders", "broker.filter_secret",
            "broker.filter_memory_bytes", "broker.filter_cpu_ms", "broker.filter_failures_max",
            "broker.filter_pause_ms", "broker.filter_isolation",
        ),
        _FILTERS,
    ),
    **dict.fromkeys(
        (
            "broker.authentication", "broker.authorization", "broker.first_user",
            "broker.inner_keys", "broker.unsigned_codes", "broker.unjudged_codes",
            "broker.plain_acl", "broker.plain_acl_home",
        ),
        _CHECKED,
    ),
    **dict.fromkeys(
        ("broker.replication_start", "store.on_damage", "store.check_bodies"), _START
    ),
    "broker.audit_topic": _AUDIT,
    **dict.fromkeys(
        ("broker.cluster_topic", "broker.broker_topic", "broker.trace_topic_name"), _TOPIC
    ),
    **dict.fromkeys(
        ("broker.frame_bytes_max", "broker.unfinished_bytes_max"), "open connections have it"
    ),
    "broker.container": "the container that started the broker sets it",
    "store.index_keys": "the files of the index are opened at the start, or not",
    "store.timers": "the files of timers are opened at the start, or not",
    "store.delay_levels": "messages that wait lie in the queues of their levels",
    "store.flush": "what waits for the disk is decided at the start",
}  # fmt: skip


def why_fixed(declared: Declared) -> str | None:
    """Why a setting cannot change while the broker runs; None if it can."""
    if declared.key in LIVE:
        return None
    return FIXED.get(declared.key, "it is only read at the start")


class SettingRow(NamedTuple):
    """A row of the guide's table.

    Attributes:
        name: RocketMQ's name, or ours.
        own_name: `part.name`.
        why_not: why it needs a restart; empty if it has effect at once.
    """

    name: str
    own_name: str
    why_not: str


def setting_rows() -> Iterator[SettingRow]:
    """All settings of a broker and its store, those first that have effect at once."""
    rows = [
        SettingRow(next(iter(each.rocketmq_names), each.key), each.key, why_fixed(each) or "")
        for kind in (BrokerConfig, StoreConfig)
        for each in settings_of(kind).values()
    ]
    yield from sorted(rows, key=lambda row: (row.why_not, row.name.lower()))
