"""Which rights each request to a name server needs. Pure.

Brokers register as super users: these requests have no rule. RocketMQ's name server checks nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sprocket.auth.needs import (
    CHANGE_CLUSTER,
    CREATE,
    DELETE,
    READ_CLUSTER,
    ROUTE,
    RULES,
    Rule,
    fields_rule,
    topic_needs,
)
from sprocket.auth.policies import Need
from sprocket.message.topic import TEMPLATE
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command


def _route(command: Command, cluster: str) -> Iterator[Need]:
    name = command.fields.get("topic") or ""
    if name != TEMPLATE:
        yield from topic_needs(name, ROUTE)


#: The requests about users.
_ACCOUNTS = range(RequestCode.AUTH_CREATE_USER, RequestCode.AUTH_LIST_ACL + 1)
#: The rules by request code.
NAMESERVER_RULES: Mapping[int, Rule] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: Rule(f"topic: Pub or Sub or Get; {TEMPLATE}: none", _route),
    **dict.fromkeys(
        (
            RequestCode.GET_BROKER_CLUSTER_INFO,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
            RequestCode.GET_TOPICS_BY_CLUSTER,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS,
            RequestCode.GET_UNIT_TOPIC_LIST,
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
            RequestCode.GET_BROKER_MEMBER_GROUP,
            RequestCode.GET_KV_CONFIG,
            RequestCode.GET_KVLIST_BY_NAMESPACE,
            RequestCode.GET_NAMESRV_CONFIG,
        ),
        READ_CLUSTER,
    ),
    **dict.fromkeys(
        (
            RequestCode.PUT_KV_CONFIG,
            RequestCode.DELETE_KV_CONFIG,
            RequestCode.WIPE_WRITE_PERM_OF_BROKER,
            RequestCode.ADD_WRITE_PERM_OF_BROKER,
            RequestCode.UPDATE_NAMESRV_CONFIG,
        ),
        CHANGE_CLUSTER,
    ),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: fields_rule(topic="topic", actions=DELETE),
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: fields_rule(topic="topic", actions=CREATE),
    **{code: rule for code, rule in RULES.items() if code in _ACCOUNTS},
}
