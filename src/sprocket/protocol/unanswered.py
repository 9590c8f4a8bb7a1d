"""Why a request of RocketMQ's that a server does not answer is refused, and what serves instead.

Pure. A remark begins with the words of RocketMQ's own servers, which tools and clients show; the
reason follows. Source of the words: NettyRemotingAbstract.processRequestCommand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sprocket.protocol.codes import RequestCode

R = RequestCode

_NO_CONTROLLER = (
    "this is no controller: ask RocketMQ's; where etcd decides who leads, use `sprocket cluster "
    "status` and `elect`"
)
_NO_CONTAINER = (
    "this broker is no container of brokers: `sprocket broker --processes N` starts one, at port "
    "10811"
)
_NO_ROCKSDB = "nothing is kept in RocksDB here"
_COLD = (
    "how much old data a group may read is not limited by itself here: broker.quotas limits what a "
    "group takes, and `sprocket config quotas` shows it"
)
_FOR_NAME_SERVERS = "name servers answer it, and this is a broker"
_FOR_CLIENTS = "brokers send it to clients, and answer it never"
_OLD = "no release of RocketMQ since 4.0 sends it"


def _all(codes: Iterable[int], why: str) -> dict[int, str]:
    """One reason for several codes."""
    return dict.fromkeys(codes, why)


_CONTROLLERS = _all(
    (
        R.CONTROLLER_ALTER_SYNC_STATE_SET, R.CONTROLLER_ELECT_MASTER, R.CONTROLLER_REGISTER_BROKER,
        R.CONTROLLER_GET_REPLICA_INFO, R.CONTROLLER_GET_METADATA_INFO,
        R.CONTROLLER_GET_SYNC_STATE_DATA, R.UPDATE_CONTROLLER_CONFIG, R.GET_CONTROLLER_CONFIG,
        R.CLEAN_BROKER_DATA, R.CONTROLLER_GET_NEXT_BROKER_ID, R.CONTROLLER_APPLY_BROKER_ID,
    ),
    _NO_CONTROLLER,
)  # fmt: skip
_OF_CLIENTS = _all(
    (
        R.CHECK_TRANSACTION_STATE, R.NOTIFY_CONSUMER_IDS_CHANGED, R.RESET_CONSUMER_CLIENT_OFFSET,
        R.GET_CONSUMER_STATUS_FROM_CLIENT, R.PUSH_REPLY_MESSAGE_TO_CLIENT,
        R.NOTIFY_UNSUBSCRIBE_LITE,
    ),
    _FOR_CLIENTS,
)  # fmt: skip
_OBSOLETE = _all(
    (
        R.QUERY_BROKER_OFFSET, R.GET_TOPIC_CONFIG_LIST, R.GET_TOPIC_NAME_LIST,
        R.TRIGGER_DELETE_FILES, R.GET_CLIENT_CONFIG, R.SUSPEND_CONSUMER, R.RESUME_CONSUMER,
        R.RESET_CONSUMER_OFFSET_IN_CONSUMER, R.ADJUST_CONSUMER_THREAD_POOL,
        R.WHO_CONSUME_THE_MESSAGE, R.RESET_CONSUMER_OFFSET_IN_BROKER,
    ),
    _OLD,
)  # fmt: skip

#: By request code, why a broker does not answer it.
AT_BROKERS: Mapping[int, str] = {
    **_CONTROLLERS,
    **_OF_CLIENTS,
    **_OBSOLETE,
    **_all(
        (
            R.PUT_KV_CONFIG,
            R.GET_KV_CONFIG,
            R.DELETE_KV_CONFIG,
            R.REGISTER_BROKER,
            R.UNREGISTER_BROKER,
            R.GET_ROUTEINFO_BY_TOPIC,
            R.GET_BROKER_CLUSTER_INFO,
            R.WIPE_WRITE_PERM_OF_BROKER,
            R.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
            R.DELETE_TOPIC_IN_NAMESRV,
            R.REGISTER_TOPIC_IN_NAMESRV,
            R.GET_KVLIST_BY_NAMESPACE,
            R.GET_TOPICS_BY_CLUSTER,
            R.GET_SYSTEM_TOPIC_LIST_FROM_NS,
            R.GET_UNIT_TOPIC_LIST,
            R.GET_HAS_UNIT_SUB_TOPIC_LIST,
            R.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
            R.UPDATE_NAMESRV_CONFIG,
            R.GET_NAMESRV_CONFIG,
            R.QUERY_DATA_VERSION,
            R.ADD_WRITE_PERM_OF_BROKER,
            R.GET_BROKER_MEMBER_GROUP,
            R.BROKER_HEARTBEAT,
        ),
        _FOR_NAME_SERVERS,
    ),
    R.REGISTER_MESSAGE_FILTER_CLASS: (
        "filters in Python are off here: broker.filter_workers (filterServerNums) says how many "
        "may be in use"
    ),
    R.NOTIFY_BROKER_ROLE_CHANGED: (
        "a broker asks its controller who leads, broker.controller_heartbeat_ms says how often"
    ),
    R.REGISTER_FILTER_SERVER: "filters in Python run in processes of the broker itself",
    R.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: (
        f"{_NO_ROCKSDB}: `sprocket store verify` compares the queues with the log"
    ),
    R.EXPORT_ROCKSDB_CONFIG_TO_JSON: (
        f"{_NO_ROCKSDB}: topics, groups and offsets are JSON already, in the store's folder config"
    ),
    R.ADD_BROKER: _NO_CONTAINER,
    R.REMOVE_BROKER: _NO_CONTAINER,
    R.RESET_MASTER_FLUSH_OFFSET: (
        "a slave here keeps no flush offset of its master: it compares its log with the master's "
        "when it connects"
    ),
    R.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: _COLD,
    R.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: _COLD,
    R.GET_COLD_DATA_FLOW_CTR_INFO: _COLD,
    R.SWITCH_TIMER_ENGINE: "timers have one engine here, the wheel",
    R.ACK_LITE_MESSAGE: "messages of lite topics are acknowledged as any popped message",
}

#: By request code, why a name server does not answer it.
AT_NAME_SERVERS: Mapping[int, str] = {**_CONTROLLERS, **_OF_CLIENTS, **_OBSOLETE}
_FOR_BROKERS = "brokers answer it, and this is a name server"


def broker_remark(code: int) -> str:
    """The remark with which a broker refuses a request that it has no endpoint for."""
    return _remark(code, AT_BROKERS.get(code))


def name_server_remark(code: int) -> str:
    """The remark with which a name server does."""
    why = AT_NAME_SERVERS.get(code)
    return _remark(code, why or (_FOR_BROKERS if code in _CODES else None))


def _remark(code: int, why: str | None) -> str:
    remark = f" request type {code} not supported"
    return remark if why is None else f"{remark}: {why}"


_CODES = frozenset(RequestCode)
