"""Request modes: whether a group that lets the broker decide pulls or pops a topic (401, 402), and
which queues each member gets (400).

The queues of a topic lie on all its brokers, so a broker asks a name server for them; a broker
without name servers knows its own.
Source: QueryAssignmentProcessor, TopicRouteInfoManager of RocketMQ 5.3.
"""

from __future__ import annotations

from sprocket.base.deadline import Deadline, loop_ms
from sprocket.base.errors import (
    GroupNotFound,
    InvalidParameter,
    NoPermission,
    SprocketError,
    TopicNotFound,
)
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.pop.shares import STRATEGIES, popped_share, share
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.clients import ClientTable
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.request_modes import POP, PULL, RequestModeTable
from sprocket.broker.tables.topics import Topics
from sprocket.clientcore.routes import read_route
from sprocket.message.queue import QueueId
from sprocket.message.topic import is_readable, is_retry_topic
from sprocket.protocol.bodies import (
    Assignment,
    AssignmentBody,
    AssignmentQuery,
    Queue,
    RequestMode,
    RequestModes,
    Route,
)
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer

#: How long a route counts, and at most how many are kept.
_ROUTE_MS = 5_000
_ROUTES_MAX = 1024
_ROUTE_SECONDS = 3.0
_BROADCASTING = "BROADCASTING"


class RequestModeRequests:
    """Answers requests about request modes, and shares queues out."""

    def __init__(
        self,
        modes: RequestModeTable,
        pool: Pool,
        *,
        topics: Topics,
        groups: Groups,
        clients: ClientTable,
        settings: BrokerSettings,
    ) -> None:
        self._modes = modes
        self._pool = pool
        self._topics = topics
        self._groups = groups
        self._clients = clients
        self._settings = settings
        self._routes: dict[str, tuple[int, list[QueueId]]] = {}

    def changes(self) -> Endpoints:
        """The endpoint that changes a mode, by request code."""
        return {RequestCode.SET_MESSAGE_REQUEST_MODE: self.set_mode}

    def endpoints(self) -> Endpoints:
        """The other endpoints, by request code."""
        return {
            RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: self.every,
            RequestCode.QUERY_ASSIGNMENT: self.assign,
        }

    def set_mode(self, command: Command, peer: Peer) -> Reply:
        """Sets how a group consumes a topic.

        Raises:
            NoPermission: the topic is a retry topic, which is always pulled.
            TopicNotFound, GroupNotFound: there is no such topic or group.
            InvalidParameter: there is no such mode.
            SystemBusy: there are too many modes.
        """
        wanted = RequestMode.of_request(command.body)
        topic, group = wanted.topic or "", wanted.consumer_group or ""
        if is_retry_topic(topic):
            raise NoPermission("retry topic is not allowed to set mode")
        if self._topics.get(topic) is None:
            raise TopicNotFound(f"topic[{topic}] not exist")
        if self._groups.find(group) is None:
            raise GroupNotFound("subscription group does not exist")
        if wanted.mode not in (PULL, POP):
            raise InvalidParameter(f"a request mode is 'PULL' or 'POP', not {wanted.mode!r}")
        self._modes.put(wanted)
        return Reply()

    def every(self, command: Command, peer: Peer) -> Reply:
        """The modes of all groups."""
        return Reply(body=RequestModes(message_request_mode_map=self._modes.by_topic).encode())

    async def assign(self, command: Command, peer: Peer) -> Reply:
        """A member's queues of a topic, and whether it pulls or pops them.

        A reply without a list means that the member keeps what it has: the topic or the group is
        unknown here.

        Raises:
            InvalidParameter: the request names no topic, group or member.
        """
        query = AssignmentQuery.of_request(command.body)
        if not query.topic or not query.consumer_group or query.client_id is None:
            raise InvalidParameter("a query for queues names a topic, a group and a member")
        queues = await self._queues(query.topic)
        mode = self._mode(query.topic, query.consumer_group)
        found = None if queues is None else self._share(query, mode, queues)
        if found is None:
            return Reply(body=AssignmentBody().encode())
        assignments = [
            Assignment(
                message_queue=Queue(broker_name=broker, queue_id=number, topic=topic),
                mode=mode.mode,
            )
            for topic, broker, number in dict.fromkeys(found)
        ]
        return Reply(body=AssignmentBody(message_queue_assignments=assignments).encode())

    def _mode(self, topic: str, group: str) -> RequestMode:
        found = self._modes.get(topic, group)
        if found is not None:
            return found
        config = self._settings.config
        mode = PULL if is_retry_topic(topic) else config.request_mode
        return RequestMode(mode=mode, pop_share_queue_num=config.pop_share_queues)

    def _share(
        self, query: AssignmentQuery, mode: RequestMode, queues: list[QueueId]
    ) -> list[QueueId] | None:
        if query.message_model == _BROADCASTING or not self._settings.config.server_rebalance:
            return queues
        group = self._clients.group(query.consumer_group or "")
        member, strategy = query.client_id or "", query.strategy_name or ""
        if group is None or strategy not in STRATEGIES:
            return None
        members = sorted(set(group.client_ids()), key=_in_java)
        if member not in members:
            return []
        if mode.mode == POP:
            shared = mode.pop_share_queue_num
            return popped_share(strategy, member, queues, members, shared)
        return share(strategy, member, queues, members)

    async def _queues(self, topic: str) -> list[QueueId] | None:
        """The readable queues of a topic, sorted; None if nobody knows the topic."""
        nameservers = self._settings.config.nameservers
        if not nameservers:
            return self._own(topic)
        known = self._routes.get(topic)
        if known is not None and loop_ms() - known[0] < _ROUTE_MS:
            return known[1]
        deadline = Deadline.after(_ROUTE_SECONDS)
        header = RouteOfTopic(topic=topic, accept_standard_json_only=True)
        for address in nameservers:
            share_of_time = deadline.sooner(_ROUTE_SECONDS / len(nameservers))
            try:
                reply = await self._pool.call(address, header, deadline=share_of_time)
                route = read_route(topic, Route.decode(reply.checked().body))
            except TopicNotFound:
                return self._own(topic)
            except SprocketError:
                continue
            if len(self._routes) >= _ROUTES_MAX:
                self._routes.clear()
            self._routes[topic] = (loop_ms(), list(route.readable))
            return list(route.readable)
        return self._own(topic)

    def _own(self, topic: str) -> list[QueueId] | None:
        known = self._topics.get(topic)
        if known is None or not is_readable(known.perm):
            return None
        name = self._settings.config.name
        return [QueueId(topic, name, number) for number in range(known.read_queue_nums)]


def _in_java(text: str) -> bytes:
    """Java's order of texts: by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")
