"""A message's properties and their text: `name U+0001 value U+0002`, repeated.

There is no escaping: a value with U+0002 would become two properties, so names and values are
checked on entry. Reading drops what Java drops: pairs with an empty name or an empty value, and
pieces without a separator. Of a repeated name the last value counts.

Pure. Source: MessageDecoder.messageProperties2String and string2messageProperties, MessageConst.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from sprocket.base.errors import UsageError

#: RocketMQ's delay levels, from level 1, unless a broker is set otherwise: values of `DELAY`.
DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
DELAY_LEVEL_MAX = len(DELAY_LEVELS.split())

NAME_END = "\x01"
PAIR_END = "\x02"

#: The most UTF-8 bytes that a record can carry: their length is a signed 16-bit number.
PROPERTIES_BYTES_MAX = 32767
#: The most that a message may have when it is sent, with what the broker writes on each message.
#: What it adds to one that waits, is given back, or belongs to a transaction has room in the rest:
#: topics, queues, times, numbers and ids, 860 bytes together.
SENT_PROPERTIES_BYTES_MAX = PROPERTIES_BYTES_MAX - 1024
#: A text of so many characters fits with the broker's marks, whatever characters they are.
SENT_TEXT_SHORT = SENT_PROPERTIES_BYTES_MAX // 8

TAGS = "TAGS"
KEYS = "KEYS"
WAIT = "WAIT"
DELAY = "DELAY"
UNIQUE_KEY = "UNIQ_KEY"
PRODUCER_GROUP = "PGROUP"
RETRY_TOPIC = "RETRY_TOPIC"
REAL_TOPIC = "REAL_TOPIC"
REAL_QUEUE = "REAL_QID"
HALF = "TRAN_MSG"
HALF_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
TRANSACTION_ID = "__transactionId__"
CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
CHECK_IMMUNITY_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS"
BUYER_ID = "BUYER_ID"
ORIGIN_ID = "ORIGIN_MESSAGE_ID"
TRANSFER_FLAG = "TRANSFER_FLAG"
CORRECTION_FLAG = "CORRECTION_FLAG"
MQ2_FLAG = "MQ2_FLAG"
RECONSUME_TIMES = "RECONSUME_TIME"
RECONSUME_TIMES_MAX = "MAX_RECONSUME_TIMES"
REGION = "MSG_REGION"
TRACE_SWITCH = "TRACE_ON"
CONSUME_START_MS = "CONSUME_START_TIME"
EXTEND_UNIQUE_INFO = "EXTEND_UNIQ_INFO"
MIN_OFFSET = "MIN_OFFSET"
MAX_OFFSET = "MAX_OFFSET"
CLUSTER = "CLUSTER"
INSTANCE_ID = "INSTANCE_ID"
CORRELATION_ID = "CORRELATION_ID"
REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
REPLY_TTL = "TTL"
REPLY_ARRIVED = "ARRIVE_TIME"
PUSH_REPLY_MS = "PUSH_REPLY_TIME"
MESSAGE_TYPE = "MSG_TYPE"
SHARDING_KEY = "__SHARDINGKEY"
INNER_COUNT = "INNER_NUM"
INNER_BASE = "INNER_BASE"
PRIORITY = "_SYS_MSG_PRIORITY_"
LITE_TOPIC = "__LITE_TOPIC"
#: The queue of a message's lite topic, and the offset there. RocketMQ's names allow several queues.
LITE_QUEUE = "INNER_MULTI_DISPATCH"
LITE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
TIMER_DELAY_SECONDS = "TIMER_DELAY_SEC"
TIMER_DELAY_MS = "TIMER_DELAY_MS"
TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
TIMER_OUT_MS = "TIMER_OUT_MS"
TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"
BORN_MS = "BORN_TIMESTAMP"
TIMER_DELETE_KEY = "TIMER_DEL_UNIQKEY"
POP_HANDLE = "POP_CK"
FIRST_POP_MS = "1ST_POP_TIME"
#: Of a check point that replaces another one, whose acknowledgement is the next record; ours.
CHECK_POINT_CHANGED = "CK_CHANGED"

#: Properties that ask for delivery at a time of the sender's choice.
ASK_FOR_TIME = frozenset({TIMER_DELAY_SECONDS, TIMER_DELAY_MS, TIMER_DELIVER_MS})

#: What a broker writes about a message that waits, is given back or belongs to a transaction, and
#: reads again later. A sender may not set it.
OF_BROKERS = frozenset(
    {
        TIMER_OUT_MS,
        TIMER_ENQUEUE_MS,
        TIMER_DEQUEUE_MS,
        TIMER_ROLL_TIMES,
        REAL_TOPIC,
        REAL_QUEUE,
        RETRY_TOPIC,
        ORIGIN_ID,
        HALF_QUEUE_OFFSET,
        CHECK_TIMES,
        POP_HANDLE,
        INNER_COUNT,
        INNER_BASE,
        LITE_QUEUE,
        LITE_OFFSET,
    }
)

_RESERVED_NAMES = """
TRACE_ON MSG_REGION KEYS TAGS WAIT DELAY RETRY_TOPIC REAL_TOPIC REAL_QID TRAN_MSG PGROUP
MIN_OFFSET MAX_OFFSET BUYER_ID ORIGIN_MESSAGE_ID TRANSFER_FLAG CORRECTION_FLAG MQ2_FLAG
RECONSUME_TIME UNIQ_KEY MAX_RECONSUME_TIMES CONSUME_START_TIME POP_CK POP_CK_OFFSET
1ST_POP_TIME TRAN_PREPARED_QUEUE_OFFSET DUP_INFO EXTEND_UNIQ_INFO INSTANCE_ID
CORRELATION_ID REPLY_TO_CLIENT TTL ARRIVE_TIME PUSH_REPLY_TIME CLUSTER MSG_TYPE
INNER_MULTI_QUEUE_OFFSET TIMER_DELAY_MS TIMER_DELAY_SEC TIMER_DELIVER_MS TIMER_ENQUEUE_MS
TIMER_DEQUEUE_MS TIMER_ROLL_TIMES TIMER_OUT_MS TIMER_DEL_UNIQKEY TIMER_DELAY_LEVEL
__BORNHOST BORN_TIMESTAMP DLQ_ORIGIN_TOPIC DLQ_ORIGIN_MESSAGE_ID __CRC32#
_SYS_MSG_PRIORITY_ __LITE_TOPIC
"""
#: Names that users may not set as properties of their own. Source: MessageConst.STRING_HASH_SET.
RESERVED = frozenset(_RESERVED_NAMES.split())

_PAIR_END_BYTE = PAIR_END.encode()
_PAIR = re.compile(f"(?:^|{PAIR_END})([^{NAME_END}{PAIR_END}]+){NAME_END}([^{PAIR_END}]+)")


def encode(properties: Mapping[str, str]) -> str:
    """Properties as text, in the map's order, with a separator after the last pair too.

    Names and values are not checked; see `check_user_property`.
    """
    return "".join([f"{name}{NAME_END}{value}{PAIR_END}" for name, value in properties.items()])


def decode(text: str) -> dict[str, str]:
    """The pairs in a text, as Java reads it. Never fails."""
    # The loop is the fast path for what every sender writes. It stops at the first thing that Java
    # drops, and then the slower regular expression, which follows Java's rules, starts again.
    pairs = text.split(PAIR_END)
    if not pairs[-1]:
        pairs.pop()
    properties = {}
    try:
        for pair in pairs:
            name, properties[name] = pair.split(NAME_END, 1)
    except ValueError:  # a piece without a separator
        return dict(_PAIR.findall(text))
    if "" in properties or "" in properties.values():
        return dict(_PAIR.findall(text))
    return properties


def is_text_of(text: str, properties: Mapping[str, str]) -> bool:
    """Whether `encode` would reproduce the text from the properties that `decode` read in it."""
    return len(properties) == text.count(PAIR_END) and text[-1:] == PAIR_END


def decode_bytes(raw: bytes | bytearray | memoryview) -> dict[str, str]:
    """The pairs in a UTF-8 text; bytes that are no UTF-8 become U+FFFD, as in Java."""
    return decode(str(raw, "utf-8", "replace"))


def value_in(raw: bytes, name: str) -> str | None:
    """One property of a UTF-8 text, as `decode_bytes` reads it; None if it is absent.

    This is faster than decoding all properties if few are needed.
    """
    # A search from the end, since of a repeated name the last value counts. The mark begins with
    # the end of the pair before; only the first pair of the text has none.
    mark = _mark(name)
    at = raw.rfind(mark)
    if at >= 0:
        start = at + len(mark)
    elif raw.startswith(mark[1:]):
        start = len(mark) - 1
    else:
        return None
    end = raw.find(_PAIR_END_BYTE, start)
    value = raw[start:end] if end >= 0 else raw[start:]
    if not value:  # an empty value is dropped, so an earlier one may count
        return decode_bytes(raw).get(name)
    return value.decode("utf-8", "replace")


@lru_cache(maxsize=1024)
def _mark(name: str) -> bytes:
    """The bytes before a property's value: the end of the pair before, its name, the separator."""
    return f"{PAIR_END}{name}{NAME_END}".encode()


def check_user_property(name: str, value: str) -> None:
    """Refuses a property that the text form cannot carry, or that RocketMQ reserves.

    Raises:
        UsageError: the text contains the reason.
    """
    if not name or not value:
        raise UsageError(f"a property needs a name and a value: {name!r}={value!r}")
    for text in (name, value):
        if NAME_END in text or PAIR_END in text:
            raise UsageError(f"property {name!r} contains U+0001 or U+0002, which separate them")
    if name in RESERVED:
        raise UsageError(f"property name {name!r} is RocketMQ's own")
