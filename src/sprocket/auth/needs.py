"""Which rights each request needs: a table by request code. Pure.

A request that is not in the table needs a super user. Where a request names several topics or
groups, it needs the rights to each. The rights to a retry topic are those to its group.
Source: DefaultAuthorizationContextBuilder and the annotations of request headers in RocketMQ 5.3,
which let pass whatever has no header class; here each code has a row, or is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from sprocket.auth.policies import Action, Need
from sprocket.auth.resources import Resource, ResourceKind
from sprocket.message.topic import group_of, is_retry_topic, retry_topic
from sprocket.protocol.bodies import (
    AckBatchBody,
    AssignmentQuery,
    CheckClientBody,
    GroupConfig,
    GroupConfigList,
    HeartbeatBody,
    LockBody,
    RequestMode,
    TopicConfigList,
)
from sprocket.protocol.bodies.lite import LiteSubscriptionBody
from sprocket.protocol.codes import OwnRequestCode, RequestCode
from sprocket.protocol.command import Command

Actions = tuple[Action, ...]
PUB: Actions = (Action.PUB,)
SUB: Actions = (Action.SUB,)
CREATE: Actions = (Action.CREATE,)
UPDATE: Actions = (Action.UPDATE,)
DELETE: Actions = (Action.DELETE,)
GET: Actions = (Action.GET,)
#: What a consumer asks on its way, and an operator too.
SUB_GET: Actions = (Action.SUB, Action.GET)
SUB_UPDATE: Actions = (Action.SUB, Action.UPDATE)
ROUTE: Actions = (Action.PUB, Action.SUB, Action.GET)


class Rule(NamedTuple):
    """What the requests of one code need.

    Attributes:
        text: the needs, for people.
        of: reads them from a request; the argument `cluster` is the name of the broker's cluster.
    """

    text: str
    of: Callable[[Command, str], Iterable[Need]]


def needs_of(
    command: Command, cluster: str, rules: Mapping[int, Rule] | None = None
) -> list[Need] | None:
    """The rights that a request needs; None if nobody but a super user may make it.

    Args:
        rules: those of a broker if this is None.

    Raises:
        SprocketError: the request cannot be read.
    """
    rule = (RULES if rules is None else rules).get(command.code)
    return None if rule is None else list(rule.of(command, cluster))


def topic_needs(name: str, actions: Actions) -> list[Need]:
    """The rights to a topic, or to the group whose retry topic it is."""
    return list(_topic(name, actions))


def _topic(name: str, actions: Actions, group: str = "") -> Iterator[Need]:
    """Rights to a topic, or to the group whose retry topic it is.

    Args:
        group: the group to which the request needs rights anyway, and so to its retry topics.
            A pop retry topic of the older form, `group_topic`, has the name of another group's
            retry topic, so it counts as that.
    """
    if not is_retry_topic(name):
        yield Need(Resource(ResourceKind.TOPIC, name), actions)
        return
    owner = (group_of(name) or "").partition("+")[0]
    if owner != group:
        yield from _group(owner, actions)


def _handle(command: Command, cluster: str) -> Iterator[Need]:
    fields = command.fields
    yield from _handled(fields.get("topic") or "", fields.get("consumerGroup") or "")


# A handle is the group's own, whatever the topic is: it reads nothing of a group whose retry topic
# has the same name.
def _handled(topic: str, group: str) -> Iterator[Need]:
    """Rights to acknowledge or hide a message that a group has popped."""
    yield from _group(group, SUB)
    if not (group and topic.startswith(f"{retry_topic(group)}_")):
        yield from _topic(topic, SUB, group)


def _group(name: str, actions: Actions) -> Iterator[Need]:
    yield Need(Resource(ResourceKind.GROUP, group_of(name) or name), actions)


def _text(actions: Actions) -> str:
    return " or ".join(actions)


def fields_rule(
    *,
    topic: str = "",
    group: str = "",
    actions: Actions,
    group_actions: Actions | None = None,
    may_lack: bool = False,
) -> Rule:
    """A rule about the topic and group in two fields of the header.

    Args:
        topic, group: the fields' wire names; empty for none.
        group_actions: on the group, if these are others.
        may_lack: whether a request without one of the fields needs nothing for it.
    """
    on_group = group_actions or actions

    def needs(command: Command, cluster: str) -> Iterator[Need]:
        fields = command.fields
        group_name = (fields.get(group) or "") if group else ""
        if topic and (fields.get(topic) or not may_lack):
            yield from _topic(fields.get(topic) or "", actions, group_name)
        if group and (group_name or not may_lack):
            yield from _group(group_name, on_group)

    words = []
    if topic:
        words.append(f"topic: {_text(actions)}")
    if group:
        words.append(f"group: {_text(on_group)}")
    return Rule("; ".join(words) + (" (of those that it names)" if may_lack else ""), needs)


def _cluster(actions: Actions) -> Rule:
    def needs(command: Command, cluster: str) -> Iterator[Need]:
        yield Need(Resource(ResourceKind.CLUSTER, cluster), actions)

    return Rule(f"cluster: {_text(actions)}", needs)


def _heartbeat(command: Command, cluster: str) -> Iterator[Need]:
    for consumer in HeartbeatBody.of_request(command.body).consumers:
        group = consumer.group_name
        yield from _group(group, SUB)
        for each in consumer.subscriptions:
            yield from _topic(each.topic or "", SUB, group)


def _locks(command: Command, cluster: str) -> Iterator[Need]:
    body = LockBody.of_request(command.body)
    group = body.consumer_group or ""
    yield from _group(group, SUB)
    for name in dict.fromkeys(queue.topic or "" for queue in body.mq_set):
        yield from _topic(name, SUB, group)


def _client_check(command: Command, cluster: str) -> Iterator[Need]:
    body = CheckClientBody.of_request(command.body)
    group = body.group or ""
    yield from _group(group, SUB)
    if body.subscription_data is not None:
        yield from _topic(body.subscription_data.topic or "", SUB, group)


def _assignment(command: Command, cluster: str) -> Iterator[Need]:
    query = AssignmentQuery.of_request(command.body)
    group = query.consumer_group or ""
    yield from _group(group, SUB)
    yield from _topic(query.topic or "", SUB, group)


def _lite_subscriptions(command: Command, cluster: str) -> Iterator[Need]:
    entries = LiteSubscriptionBody.of_request(command.body).subscription_set
    for group, topic in sorted({(each.group or "", each.topic or "") for each in entries}):
        yield from _group(group, SUB)
        yield from _topic(topic, SUB, group)


def _request_mode(command: Command, cluster: str) -> Iterator[Need]:
    mode = RequestMode.of_request(command.body)
    group = mode.consumer_group or ""
    yield from _group(group, UPDATE)
    yield from _topic(mode.topic or "", UPDATE, group)


def _acks(command: Command, cluster: str) -> Iterator[Need]:
    found = {
        (each.consumer_group or "", each.topic or "")
        for each in AckBatchBody.of_request(command.body).acks
    }
    for group, topic in sorted(found):
        yield from _handled(topic, group)


def _topics(command: Command, cluster: str) -> Iterator[Need]:
    for each in TopicConfigList.of_request(command.body).topic_config_list:
        yield from _topic(each.topic_name or "", CREATE)


def _new_group(command: Command, cluster: str) -> Iterator[Need]:
    yield from _group(GroupConfig.of_request(command.body).group_name or "", CREATE)


def _new_groups(command: Command, cluster: str) -> Iterator[Need]:
    for each in GroupConfigList.of_request(command.body).group_config_list:
        yield from _group(each.group_name or "", CREATE)


def _progress(command: Command, cluster: str) -> Iterator[Need]:
    fields = command.fields
    group = fields.get("consumerGroup") or ""
    yield from _group(group, GET)
    named = [fields.get("topic") or "", *(fields.get("topicList") or "").split(";")]
    for name in dict.fromkeys(filter(None, named)):
        yield from _topic(name, GET, group)


def _queue_entries(command: Command, cluster: str) -> Iterator[Need]:
    fields = command.fields
    group = fields.get("consumerGroup") or ""
    yield from _topic(fields.get("topic") or "", GET, group)
    if group:
        yield from _group(group, GET)


def _corrections(command: Command, cluster: str) -> Iterator[Need]:
    fields = command.fields
    yield from _topic(fields.get("topic") or "", GET)
    groups = [fields.get("compareGroup") or "", *(fields.get("filterGroups") or "").split(",")]
    for name in dict.fromkeys(filter(None, groups)):
        yield from _group(name, GET)


def _clone(command: Command, cluster: str) -> Iterator[Need]:
    fields = command.fields
    yield from _group(fields.get("srcGroup") or "", (Action.GET, Action.UPDATE))
    yield from _group(fields.get("destGroup") or "", UPDATE)
    yield from _topic(fields.get("topic") or "", (Action.GET, Action.UPDATE))


_SEND = fields_rule(topic="topic", actions=PUB)
_SHORT_SEND = fields_rule(topic="b", actions=PUB)
_HANDLE = Rule("topic: Sub; group: Sub", _handle)
_PULL = fields_rule(topic="topic", group="consumerGroup", actions=SUB)
_POSITIONS = fields_rule(topic="topic", actions=SUB_GET)
READ_CLUSTER, CHANGE_CLUSTER = _cluster(GET), _cluster(UPDATE)

R, OWN = RequestCode, OwnRequestCode
#: The rules of a broker by request code. Codes of controllers are not served by anything here.
RULES: Mapping[int, Rule] = {
    # Producers. A message for a retry topic is one that a consumer sends back.
    R.SEND_MESSAGE: Rule("topic: Pub; retry topic: group Sub", lambda c, n: _sent(c, "topic")),
    R.SEND_MESSAGE_V2: Rule("topic: Pub; retry topic: group Sub", lambda c, n: _sent(c, "b")),
    R.SEND_BATCH_MESSAGE: Rule("topic: Pub; retry topic: group Sub", lambda c, n: _sent(c, "b")),
    R.SEND_REPLY_MESSAGE: _SEND,
    R.SEND_REPLY_MESSAGE_V2: _SHORT_SEND,
    R.END_TRANSACTION: fields_rule(topic="topic", actions=PUB, may_lack=True),
    R.RECALL_MESSAGE: _SEND,
    OWN.STAGE_BATCH: _SEND,
    # The topics are known once the batches are read: its endpoint asks for the rights to each.
    OWN.PUBLISH_STAGED: fields_rule(topic="topic", actions=PUB, may_lack=True),
    R.CONSUMER_SEND_MSG_BACK: fields_rule(group="group", actions=SUB),
    # Consumers.
    R.PULL_MESSAGE: _PULL,
    R.LITE_PULL_MESSAGE: _PULL,
    R.POP_MESSAGE: _PULL,
    R.PEEK_MESSAGE: _PULL,
    R.ACK_MESSAGE: _HANDLE,
    R.CHANGE_MESSAGE_INVISIBLETIME: _HANDLE,
    R.POP_ROLLBACK: CHANGE_CLUSTER,
    R.NOTIFICATION: _PULL,
    R.BATCH_ACK_MESSAGE: Rule("topic: Sub; group: Sub (each)", _acks),
    R.POP_LITE_MESSAGE: _PULL,
    R.LITE_SUBSCRIPTION_CTL: Rule("each group and its parent topic: Sub", _lite_subscriptions),
    R.GET_BROKER_LITE_INFO: READ_CLUSTER,
    R.GET_PARENT_TOPIC_INFO: fields_rule(topic="topic", actions=GET),
    R.GET_LITE_TOPIC_INFO: fields_rule(topic="parentTopic", actions=GET),
    R.GET_LITE_CLIENT_INFO: fields_rule(topic="parentTopic", group="group", actions=GET),
    R.GET_LITE_GROUP_INFO: fields_rule(group="group", actions=GET),
    R.TRIGGER_LITE_DISPATCH: fields_rule(group="group", actions=UPDATE),
    R.POLLING_INFO: fields_rule(topic="topic", group="consumerGroup", actions=SUB_GET),
    R.HEART_BEAT: Rule("each group and topic that it consumes: Sub", _heartbeat),
    R.UNREGISTER_CLIENT: fields_rule(group="consumerGroup", actions=SUB, may_lack=True),
    R.CHECK_CLIENT_CONFIG: Rule("topic: Sub; group: Sub", _client_check),
    R.GET_CONSUMER_LIST_BY_GROUP: fields_rule(group="consumerGroup", actions=SUB_GET),
    R.LOCK_BATCH_MQ: Rule("group and each topic: Sub", _locks),
    R.UNLOCK_BATCH_MQ: Rule("group and each topic: Sub", _locks),
    R.QUERY_ASSIGNMENT: Rule("topic: Sub; group: Sub", _assignment),
    R.QUERY_CONSUMER_OFFSET: fields_rule(topic="topic", group="consumerGroup", actions=SUB_GET),
    R.UPDATE_CONSUMER_OFFSET: fields_rule(topic="topic", group="consumerGroup", actions=SUB_UPDATE),
    R.SEARCH_OFFSET_BY_TIMESTAMP: _POSITIONS,
    R.GET_MAX_OFFSET: _POSITIONS,
    R.GET_MIN_OFFSET: _POSITIONS,
    R.GET_EARLIEST_MSG_STORETIME: _POSITIONS,
    R.QUERY_MESSAGE: _POSITIONS,
    R.REGISTER_MESSAGE_FILTER_CLASS: _PULL,
    OWN.FILTERS: fields_rule(group="consumerGroup", actions=SUB_GET),
    OWN.REMOVE_FILTER: _PULL,
    # A message is found by its place in the log, whatever its topic is.
    R.VIEW_MESSAGE_BY_ID: READ_CLUSTER,
    # Operators: topics.
    R.UPDATE_AND_CREATE_TOPIC: fields_rule(topic="topic", actions=CREATE),
    R.UPDATE_AND_CREATE_TOPIC_LIST: Rule("each topic: Create", _topics),
    R.UPDATE_AND_CREATE_STATIC_TOPIC: fields_rule(topic="topic", actions=CREATE),
    R.DELETE_TOPIC_IN_BROKER: fields_rule(topic="topic", actions=DELETE),
    R.GET_TOPIC_CONFIG: fields_rule(topic="topic", actions=GET),
    R.GET_TOPIC_STATS_INFO: fields_rule(topic="topic", actions=GET),
    R.QUERY_TOPIC_CONSUME_BY_WHO: fields_rule(topic="topic", actions=GET),
    R.QUERY_CONSUME_QUEUE: Rule("topic: Get; group, if it is named: Get", _queue_entries),
    R.QUERY_CORRECTION_OFFSET: Rule("topic: Get; each group: Get", _corrections),
    R.RESUME_CHECK_HALF_MESSAGE: fields_rule(topic="topic", actions=UPDATE),
    # Operators: groups.
    R.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: Rule("group: Create", _new_group),
    R.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: Rule("each group: Create", _new_groups),
    R.DELETE_SUBSCRIPTIONGROUP: fields_rule(group="groupName", actions=DELETE),
    R.GET_SUBSCRIPTIONGROUP_CONFIG: fields_rule(group="group", actions=GET),
    R.GET_CONSUMER_CONNECTION_LIST: fields_rule(group="consumerGroup", actions=GET),
    R.GET_CONSUMER_RUNNING_INFO: fields_rule(group="consumerGroup", actions=GET),
    R.GET_CONSUME_STATS: Rule("group: Get; topics, if they are named: Get", _progress),
    R.QUERY_TOPICS_BY_CONSUMER: fields_rule(group="group", actions=GET),
    R.QUERY_SUBSCRIPTION_BY_CONSUMER: fields_rule(topic="topic", group="group", actions=GET),
    R.QUERY_CONSUME_TIME_SPAN: fields_rule(topic="topic", group="group", actions=GET),
    R.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: fields_rule(topic="topic", group="group", actions=GET),
    R.INVOKE_BROKER_TO_RESET_OFFSET: fields_rule(topic="topic", group="group", actions=UPDATE),
    R.RESET_CONSUMER_OFFSET_IN_BROKER: fields_rule(topic="topic", group="group", actions=UPDATE),
    R.UPDATE_AND_GET_GROUP_FORBIDDEN: fields_rule(topic="topic", group="group", actions=UPDATE),
    R.SET_MESSAGE_REQUEST_MODE: Rule("topic: Update; group: Update", _request_mode),
    R.CLONE_GROUP_OFFSET: Rule(
        "group that is copied from: Get or Update; other group: Update; topic: Get or Update",
        _clone,
    ),
    R.CONSUME_MESSAGE_DIRECTLY: fields_rule(
        topic="topic", group="consumerGroup", actions=SUB, may_lack=True
    ),
    # Operators: a broker as a whole.
    R.GET_ALL_TOPIC_CONFIG: READ_CLUSTER,
    R.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: READ_CLUSTER,
    R.GET_ALL_CONSUMER_OFFSET: READ_CLUSTER,
    R.GET_ALL_DELAY_OFFSET: READ_CLUSTER,
    R.GET_ALL_MESSAGE_REQUEST_MODE: READ_CLUSTER,
    R.GET_TIMER_CHECK_POINT: READ_CLUSTER,
    R.GET_TIMER_METRICS: READ_CLUSTER,
    R.GET_BROKER_CONFIG: READ_CLUSTER,
    R.UPDATE_BROKER_CONFIG: CHANGE_CLUSTER,
    R.GET_BROKER_RUNTIME_INFO: READ_CLUSTER,
    R.GET_PRODUCER_CONNECTION_LIST: READ_CLUSTER,
    R.GET_ALL_PRODUCER_INFO: READ_CLUSTER,
    R.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: READ_CLUSTER,
    R.VIEW_BROKER_STATS_DATA: READ_CLUSTER,
    R.GET_BROKER_CONSUME_STATS: READ_CLUSTER,
    R.CLEAN_EXPIRED_CONSUMEQUEUE: CHANGE_CLUSTER,
    R.CLEAN_UNUSED_TOPIC: CHANGE_CLUSTER,
    R.DELETE_EXPIRED_COMMITLOG: CHANGE_CLUSTER,
    R.SET_COMMITLOG_READ_MODE: CHANGE_CLUSTER,
    # Copies of a broker.
    R.NOTIFY_MIN_BROKER_ID_CHANGE: CHANGE_CLUSTER,
    R.EXCHANGE_BROKER_HA_INFO: CHANGE_CLUSTER,
    R.NOTIFY_BROKER_ROLE_CHANGED: CHANGE_CLUSTER,
    R.GET_BROKER_HA_STATUS: READ_CLUSTER,
    R.GET_BROKER_EPOCH_CACHE: READ_CLUSTER,
    OWN.GROUP_STATE: READ_CLUSTER,
    OWN.MEMBER_STATE: READ_CLUSTER,
    OWN.HAND_OVER: CHANGE_CLUSTER,
    # Users. Who may change super users is checked where users are changed.
    R.AUTH_CREATE_USER: CHANGE_CLUSTER,
    R.AUTH_UPDATE_USER: CHANGE_CLUSTER,
    R.AUTH_DELETE_USER: CHANGE_CLUSTER,
    R.AUTH_GET_USER: READ_CLUSTER,
    R.AUTH_LIST_USER: READ_CLUSTER,
    R.AUTH_CREATE_ACL: CHANGE_CLUSTER,
    R.AUTH_UPDATE_ACL: CHANGE_CLUSTER,
    R.AUTH_DELETE_ACL: CHANGE_CLUSTER,
    R.AUTH_GET_ACL: READ_CLUSTER,
    R.AUTH_LIST_ACL: READ_CLUSTER,
    # Accounts of RocketMQ 4.x. Its broker lets every account change all of them.
    R.UPDATE_AND_CREATE_ACL_CONFIG: CHANGE_CLUSTER,
    R.DELETE_ACL_CONFIG: CHANGE_CLUSTER,
    R.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: CHANGE_CLUSTER,
    R.GET_BROKER_CLUSTER_ACL_INFO: READ_CLUSTER,
}


def _sent(command: Command, field: str) -> Iterator[Need]:
    name = command.fields.get(field) or ""
    yield from _topic(name, SUB if is_retry_topic(name) else PUB)
