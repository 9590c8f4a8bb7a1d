"""Changes of the subscriptions of lite topics (200071), and what follows from them.

A broker keeps no subscription over a restart: clients send theirs anew each half minute. Where
RocketMQ's broker accepts only the lite topics of its own share of the parent topic's queues, this
one accepts all, and those that have no messages here cost only their names.
Source: LiteSubscriptionCtlProcessor, LiteSubscriptionRegistryImpl of RocketMQ 5.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sprocket.base.errors import InvalidParameter, NoPermission, ReplyError
from sprocket.base.ports import Clock
from sprocket.base.suggestions import shown
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.lite.held import HeldLitePops
from sprocket.broker.lite.ready import ReadyLites
from sprocket.broker.lite.rules import LiteRules
from sprocket.broker.lite.subscriptions import Excluded, LiteClient, LiteSubscriptions
from sprocket.broker.lite.taking import QUEUE, LiteTaking
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.message.lite import LiteName, fault_of_lite_topic
from sprocket.protocol.bodies import lite as actions
from sprocket.protocol.bodies.lite import (
    LiteOffsetOption,
    LiteSubscriptionBody,
    LiteSubscriptionEntry,
)
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.lite import NotifyUnsubscribeLite
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store

#: Clients in one request, lite topics in it, and characters of the id of a client, at most.
_ENTRIES_MAX = 1000
_LITES_MAX = 20_000
_ID_MAX = 512
#: Up to so many new lite topics are looked at at once, and more of them soon, bit by bit.
_AT_ONCE = 64


class LiteControlRequests:
    """Answers changes of subscriptions.

    Args:
        forget_order: forgets what a group has popped from a queue: it is reset.
        look: looks for messages of all lite topics of a parent topic, for a group.
    """

    def __init__(
        self,
        store: Store,
        subscriptions: LiteSubscriptions,
        ready: ReadyLites,
        *,
        rules: LiteRules,
        taking: LiteTaking,
        offsets: ConsumerOffsets,
        held: HeldLitePops,
        settings: BrokerSettings,
        clock: Clock,
        forget_order: Callable[[str, str, int], None],
        look: Callable[[LiteClient], None],
    ) -> None:
        self._lite = store.lite
        self._subscriptions = subscriptions
        self._ready = ready
        self._rules = rules
        self._taking = taking
        self._offsets = offsets
        self._held = held
        self._settings = settings
        self._clock = clock
        self._forget_order = forget_order
        self._look = look
        #: The connection through which each client last changed its subscription.
        self._peers: dict[str, Peer] = {}

    def endpoints(self) -> Endpoints:
        """The endpoint, by request code."""
        return {RequestCode.LITE_SUBSCRIPTION_CTL: self.change}

    def change(self, command: Command, peer: Peer) -> Reply:
        """Adds or removes lite topics.

        Raises:
            ReplyError: code 604, there is no change, the group may not consume, or subscribes all;
                code 2018, there are too many subscriptions.
            InvalidParameter: a client, group or topic is missing, or a lite topic has an invalid
                name.
            NoPermission: a user names a client of another group.
        """
        body = LiteSubscriptionBody()
        if command.body:
            body = LiteSubscriptionBody.of_request(command.body)
        if not 0 < len(body.subscription_set) <= _ENTRIES_MAX:
            raise _illegal("LiteSubscriptionCtlRequestBody is empty.")
        if sum(len(entry.lite_topic_set or ()) for entry in body.subscription_set) > _LITES_MAX:
            raise InvalidParameter(f"a request names at most {_LITES_MAX} lite topics")
        for entry in body.subscription_set:
            if command.user:
                self._check_owner(entry)
            self._change(entry, peer)
        return Reply()

    # Whoever asks has the rights to the group that it names. The id of a client is a mere text, and
    # a client has one group as long as it lives.
    def _check_owner(self, entry: LiteSubscriptionEntry) -> None:
        """Keeps a user who may consume in one group from the clients of another.

        Raises:
            NoPermission: the client is known in another group.
        """
        known = self._subscriptions.find(entry.client_id or "")
        if known is not None and known.group != entry.group:
            raise NoPermission(f"the client is none of group {shown(entry.group or '')}")

    def _change(self, entry: LiteSubscriptionEntry, peer: Peer) -> None:
        client_id, group, parent = entry.client_id or "", entry.group or "", entry.topic or ""
        if not (client_id and group and parent) or len(client_id) > _ID_MAX:
            raise InvalidParameter("a subscription names a client, a group and a topic")
        lites = entry.lite_topic_set or []
        if entry.action == actions.COMPLETE_REMOVE:
            self.forget(client_id)
        elif entry.action == actions.PARTIAL_REMOVE:
            self._remove(client_id, group, parent, lites)
        elif entry.action in (actions.PARTIAL_ADD, actions.COMPLETE_ADD):
            if not self._rules.may_consume(group):
                raise _illegal("Consumer group is not allowed to consume.")
            for lite in lites:
                if fault := fault_of_lite_topic(lite):
                    raise InvalidParameter(fault)
            if entry.action == actions.PARTIAL_ADD:
                self._add(client_id, group, parent, lites, entry.offset_option)
            else:
                self._replace(client_id, group, parent, lites)
            self._peers[client_id] = peer
        else:
            raise _illegal(f"no action {entry.action} of subscriptions")

    def _add(
        self, client_id: str, group: str, parent: str, lites: Sequence[str],
        option: LiteOffsetOption | None,
    ) -> None:  # fmt: skip
        if self._rules.is_wildcard(group):
            raise _illegal("subscribe lite operation is not supported for this group")
        new = self._subscriptions.new_of(client_id, group, parent, lites)
        self._check_room(len(new))
        client = self._client(client_id, group, parent)
        for lite in dict.fromkeys(lites):
            name = LiteName(parent, lite)
            self._exclude_others(client, name)
            self._begin(group, name, option)
        self._added(client, self._subscriptions.add(client, new))

    def _replace(self, client_id: str, group: str, parent: str, lites: Sequence[str]) -> None:
        if self._rules.is_wildcard(group):
            known = self._subscriptions.find(client_id)
            self._check_room(int(known is None or not known.has_all))
            client = self._client(client_id, group, parent)
            if self._subscriptions.add_all(client):
                self._look(client)
            return
        new = self._subscriptions.new_of(client_id, group, parent, lites)
        self._check_room(len(new))
        client = self._client(client_id, group, parent)
        kept = set(lites)
        self._removed(
            client,
            self._subscriptions.remove(client, [each for each in client.lites if each not in kept]),
        )
        self._added(client, self._subscriptions.add(client, new))

    def _remove(self, client_id: str, group: str, parent: str, lites: Sequence[str]) -> None:
        client = self._subscriptions.find(client_id)
        if client is None or (client.group, client.parent) != (group, parent):
            return
        client.changed_ms = self._clock.now_ms()
        gone = self._subscriptions.remove(client, lites)
        self._removed(client, gone)
        if self._rules.resets_unsubscribed(group):
            for name in gone:
                self._reset(group, name, self._lite.min_offset(name))

    def _client(self, client_id: str, group: str, parent: str) -> LiteClient:
        before = self._subscriptions.find(client_id)
        if before is None and len(self._subscriptions) >= self._limit:
            raise self._too_many()
        client = self._subscriptions.client(client_id, group, parent, self._clock.now_ms())
        if before is not None and before is not client:
            self._ready.forget_client(before)
        return client

    def _check_room(self, count: int) -> None:
        if count and self._subscriptions.count + count > self._limit:
            raise self._too_many()

    @property
    def _limit(self) -> int:
        return self._settings.config.lite_subscriptions_max

    def _too_many(self) -> ReplyError:
        return ReplyError.of(
            ResponseCode.LITE_SUBSCRIPTION_QUOTA_EXCEEDED,
            f"lite subscription quota exceeded {self._limit}",
        )

    def _added(self, client: LiteClient, names: Sequence[LiteName]) -> None:
        if len(names) > _AT_ONCE:
            self._look(client)
            return
        for name in names:
            if self._lite.has(name) and self._taking.has_rest(client.group, name):
                self._ready.mark_for(client, name)
        if self._ready.of(client):
            self._held.wake([client.client_id])

    def _removed(self, client: LiteClient, names: Sequence[LiteName]) -> None:
        for name in names:
            self._ready.unmark(client, name)

    def _exclude_others(self, client: LiteClient, name: LiteName) -> None:
        if not self._rules.is_exclusive(client.group):
            return
        excluded = self._subscriptions.exclude(client, name)
        for each in excluded:
            self._notify(each)
        if excluded and self._rules.resets_exclusive(client.group):
            self._reset(client.group, name, self._lite.min_offset(name))

    def _notify(self, excluded: Excluded) -> None:
        other = self._subscriptions.find(excluded.client_id)
        if other is not None:
            self._ready.unmark(other, excluded.name)
        peer = self._peers.get(excluded.client_id)
        if peer is not None:
            peer.send_oneway(
                NotifyUnsubscribeLite(
                    lite_topic=excluded.name.lite,
                    consumer_group=excluded.group,
                    client_id=excluded.client_id,
                )
            )

    # A time is taken and does nothing, as in RocketMQ.
    def _begin(self, group: str, name: LiteName, option: LiteOffsetOption | None) -> None:
        """Sets the offset of a group as a client asks for that subscribes."""
        if option is None:
            return
        low, high = self._lite.min_offset(name), self._lite.max_offset(name)
        committed = self._offsets.committed(group, name.queue, QUEUE)
        offset = None
        if option.type == actions.POLICY:
            offset = {actions.POLICY_MIN: low, actions.POLICY_MAX: high}.get(option.value)
        elif option.type == actions.OFFSET:
            offset = option.value
        elif option.type == actions.TAIL and committed is not None:
            offset = committed - option.value
        if offset is not None:
            self._reset(group, name, min(max(offset, low), high))

    def _reset(self, group: str, name: LiteName, offset: int) -> None:
        if self._offsets.committed(group, name.queue, QUEUE) == offset:
            return
        self._offsets.popped.reset(group, name.queue, QUEUE, self._clock.now_ms())
        self._offsets.put(group, name.queue, queue_number=QUEUE, offset=offset)
        self._forget_order(group, name.queue, QUEUE)
        self._ready.unblock(group, name)
        self._held.wake(self._ready.mark(group, name))

    def forget(self, client_id: str) -> None:
        """Forgets a client that is gone."""
        self._peers.pop(client_id, None)
        client = self._subscriptions.remove_client(client_id)
        if client is not None:
            self._ready.forget_client(client)
            self._held.end(client_id)


def _illegal(remark: str) -> ReplyError:
    return ReplyError.of(ResponseCode.ILLEGAL_OPERATION, remark)
