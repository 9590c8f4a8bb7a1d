"""Names of topics and groups, RocketMQ's own topics, and topic permissions.

Pure. Source: TopicValidator, PermName, MixAll and KeyBuilder of RocketMQ 5.x.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sprocket.base.errors import UsageError

TOPIC_LENGTH_MAX = 127
GROUP_LENGTH_MAX = 255

RETRY_PREFIX = "%RETRY%"
DEAD_LETTER_PREFIX = "%DLQ%"
SYSTEM_PREFIX = "rmq_sys_"
#: Groups whose names begin so are those of brokers.
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"

#: The template of topics that are created by the first send.
TEMPLATE = "TBW102"
SCHEDULE = "SCHEDULE_TOPIC_XXXX"
HALF = "RMQ_SYS_TRANS_HALF_TOPIC"
HALF_SETTLED = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
CHECKS_EXHAUSTED = "TRANS_CHECK_MAX_TIME_TOPIC"
TRACE = "RMQ_SYS_TRACE_TOPIC"
BENCHMARK = "BenchmarkTest"
SELF_TEST = "SELF_TEST_TOPIC"
OFFSET_MOVED = "OFFSET_MOVED_EVENT"
CHECKPOINT = "CHECKPOINT_TOPIC"
TIMER = "rmq_sys_wheel_timer"
#: Batches that a writer has staged, and which of them are published: Sprocket's alone.
STAGED = f"{SYSTEM_PREFIX}sprocket_staged"
#: The group whose offsets say how far the revive queues are done. Source: PopAckConstants.
REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
_REVIVE_PREFIX = f"{SYSTEM_PREFIX}REVIVE_LOG_"

SYSTEM_TOPICS = frozenset(
    {
        TEMPLATE,
        SCHEDULE,
        HALF,
        HALF_SETTLED,
        CHECKS_EXHAUSTED,
        TRACE,
        BENCHMARK,
        SELF_TEST,
        OFFSET_MOVED,
        CHECKPOINT,
    }
)
REPLY_SUFFIX = "_REPLY_TOPIC"
#: System topics to which producers may not send.
CLOSED_TOPICS = frozenset(
    {SCHEDULE, HALF, HALF_SETTLED, CHECKS_EXHAUSTED, SELF_TEST, OFFSET_MOVED, STAGED}
)

READ = 0b100
WRITE = 0b010
INHERIT = 0b001

#: Bits of a topic's system flag: its messages, or its subscribers, belong to a unit.
#: Source: TopicSysFlag of RocketMQ 5.x.
UNIT = 0x1
UNIT_SUBSCRIPTION = 0x2

_ALLOWED = re.compile(r"[%|a-zA-Z0-9_-]+")
_ILLEGAL = "contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"


def fault_of_topic(name: str) -> str | None:
    """What is wrong with a topic's name, in RocketMQ's words; None if nothing is."""
    # A name from outside may be as long as a frame: too long ones are kept out of the cache.
    look = _fault_of_topic if len(name) <= TOPIC_LENGTH_MAX else _fault_of_topic.__wrapped__
    return look(name)


@lru_cache(maxsize=4096)
def _fault_of_topic(name: str) -> str | None:
    if not name.strip():
        return "The specified topic is blank."
    if not _ALLOWED.fullmatch(name):
        return f"The specified topic {_ILLEGAL}"
    if len(name) > TOPIC_LENGTH_MAX:
        return "The specified topic is longer than topic max length."
    return None


def fault_of_group(name: str) -> str | None:
    """What is wrong with a group's name, in RocketMQ's words; None if nothing is."""
    # A name from outside may be as long as a frame: too long ones are kept out of the cache.
    look = _fault_of_group if len(name) <= GROUP_LENGTH_MAX else _fault_of_group.__wrapped__
    return look(name)


@lru_cache(maxsize=4096)
def _fault_of_group(name: str) -> str | None:
    if not name.strip():
        return "the specified group is blank"
    if len(name) > GROUP_LENGTH_MAX:
        return "the specified group is longer than group max length 255."
    if not _ALLOWED.fullmatch(name):
        return f"the specified group[{name}] {_ILLEGAL}"
    return None


def fault_of_consumer_group(name: str) -> str | None:
    """As `fault_of_group`; the name has to fit into that of the group's retry topic as well."""
    fault = fault_of_group(name)
    if fault is None and len(RETRY_PREFIX) + len(name) > TOPIC_LENGTH_MAX:
        longest = TOPIC_LENGTH_MAX - len(RETRY_PREFIX)
        fault = (
            f"the specified group has {len(name)} characters; a consumer group has at most "
            f"{longest}, so that its retry topic is a topic"
        )
    return fault


def check_topic(name: str) -> None:
    """Raises UsageError if `name` cannot name a topic."""
    if not isinstance(name, str):
        raise UsageError(f"a topic is a text, not {type(name).__name__}")
    if fault := fault_of_topic(name):
        raise UsageError(f"{fault} ({name!r})")


def check_group(name: str) -> None:
    """Raises UsageError if `name` cannot name a group."""
    if not isinstance(name, str):
        raise UsageError(f"a group is a text, not {type(name).__name__}")
    if fault := fault_of_group(name):
        raise UsageError(f"{fault} ({name!r})")


def check_consumer_group(name: str) -> None:
    """Raises UsageError if `name` cannot name a consumer group, which has a retry topic."""
    check_group(name)
    if fault := fault_of_consumer_group(name):
        raise UsageError(f"{fault} ({name!r})")


def is_system_topic(name: str) -> bool:
    """Whether RocketMQ reserves the topic."""
    return name in SYSTEM_TOPICS or name.startswith(SYSTEM_PREFIX)


def is_system_group(name: str) -> bool:
    """Whether RocketMQ reserves the consumer group."""
    return name.upper().startswith(SYSTEM_GROUP_PREFIX)


def is_closed_topic(name: str) -> bool:
    """Whether producers may not send to it."""
    return name in CLOSED_TOPICS


def retry_topic(group: str) -> str:
    """The topic through which a group gets its failed messages again."""
    return RETRY_PREFIX + group


def pop_retry_topic(topic: str, group: str, *, is_v2: bool) -> str:
    """The topic through which a group pops its failed messages of a topic again.

    In the first form `a_b` and `c` share their topic with `a` and `b_c`; in the second, `+` stands
    between group and topic, which no name contains.
    """
    return f"{RETRY_PREFIX}{group}{'+' if is_v2 else '_'}{topic}"


def popped_topic(name: str, group: str) -> str:
    """The topic that a group popped, by its name or that of its pop retry topic in either form."""
    for separator in "+_":
        prefix = f"{RETRY_PREFIX}{group}{separator}"
        if name.startswith(prefix):
            return name[len(prefix) :]
    return name


def revive_topic(cluster: str) -> str:
    """The topic of records about popped messages: given out, acknowledged."""
    return _REVIVE_PREFIX + cluster


def dead_letter_topic(group: str) -> str:
    """The topic of messages that a group has given up."""
    return DEAD_LETTER_PREFIX + group


def reply_topic(cluster: str) -> str:
    """The topic of replies to request messages in a cluster."""
    return cluster + REPLY_SUFFIX


def is_retry_topic(name: str) -> bool:
    """Whether the topic is some group's retry topic."""
    return name.startswith(RETRY_PREFIX)


def is_dead_letter_topic(name: str) -> bool:
    """Whether the topic is some group's dead-letter topic."""
    return name.startswith(DEAD_LETTER_PREFIX)


def group_of(name: str) -> str | None:
    """The group of a retry or dead-letter topic; None for others."""
    for prefix in (RETRY_PREFIX, DEAD_LETTER_PREFIX):
        if name.startswith(prefix):
            return name[len(prefix) :]
    return None


def is_readable(permission: int) -> bool:
    """Whether consumers may read."""
    return permission & READ != 0


def is_writable(permission: int) -> bool:
    """Whether producers may write."""
    return permission & WRITE != 0


def is_inherited(permission: int) -> bool:
    """Whether the topic may serve as the template of new ones."""
    return permission & INHERIT != 0


def permission_text(permission: int) -> str:
    """A permission as RocketMQ shows it: `RW-`."""
    letters = ((READ, "R"), (WRITE, "W"), (INHERIT, "X"))
    return "".join(letter if permission & bit else "-" for bit, letter in letters)
