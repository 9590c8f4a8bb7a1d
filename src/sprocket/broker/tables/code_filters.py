"""Filters in Python at a broker: their upload (302), their table, and the messages they choose.

They are off unless `filterServerNums` allows processes for them. An upload is accepted from the
networks in `filter_uploaders`, or if it is signed with `filter_secret`. It is tried out before it
is kept, so the reply reports a mistake at once, with line and column.

Source: the wire of FilterServerProcessor, MQClientAPIImpl.registerMessageFilterClass of 4.9.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import zlib
from collections.abc import Awaitable, Callable, Sequence

from sprocket.base.errors import (
    ConfigError,
    FilterFailed,
    FilterMissing,
    InvalidParameter,
    NoPermission,
    SubscriptionInvalid,
    SystemFailure,
    UsageError,
)
from sprocket.base.ports import Clock
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.settings import BrokerSettings
from sprocket.filter.python import PYTHON, Upload, is_name, parts_of, version_of
from sprocket.filterserver.judge import Judge
from sprocket.filterserver.judges import Judges, Start
from sprocket.filterserver.process import FilterProcess, NotConfined, ProcessLimits
from sprocket.filterserver.slices import chosen, passed_over, records, shown_at_once
from sprocket.filterserver.uploads import Key, Uploaded, Uploads
from sprocket.message.record import body_crc
from sprocket.message.topic import fault_of_group, fault_of_topic
from sprocket.protocol.bodies import FilterFacts, FilterList
from sprocket.protocol.codes import OwnRequestCode, RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.filter import FiltersOf, RemoveFilter, UploadFilter
from sprocket.protocol.requests.pull import CANNOT_FILTER
from sprocket.remoting import address as addresses
from sprocket.remoting.endpoints import Endpoint
from sprocket.remoting.transport import Peer
from sprocket.store.reading.queue_reader import ReadResult

logger = logging.getLogger(__name__)

#: A signature is valid for so long before and after its time, ms.
_SIGNED_MS = 300_000
#: The text that a removal signs in place of a version.
REMOVAL = "-"

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Host = ipaddress.IPv4Address | ipaddress.IPv6Address
#: Called with the messages read and a pull's limits (messages, bytes); gives those that match.
Choose = Callable[[ReadResult, int, int], Awaitable[ReadResult]]


class CodeFilters:
    """Keeps the uploaded filters and runs them over messages.

    Args:
        on_change: called with the key of a filter that has changed.
        start: starts a filter's process.

    Raises:
        ConfigError: an item of `filter_uploaders` is no network.

    Attributes:
        uploads: the table of filters.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        *,
        on_change: Callable[[Key], None],
        start: Start = FilterProcess.start,
    ) -> None:
        config = settings.config
        self._settings = settings
        self._clock = clock
        self.uploads = Uploads(on_change)
        self._judges = Judges(
            max(config.filter_workers, 1),
            ProcessLimits(
                config.filter_memory_bytes,
                config.filter_cpu_ms,
                config.filter_isolation == "kernel",
            ),
            failures_max=config.filter_failures_max,
            switch_off=self.uploads.switch_off,
            pause_ms=config.filter_pause_ms,
            start=start,
        )
        self._networks = [_network(each) for each in config.filter_uploaders]
        self.run = self._judges.run
        self.close = self._judges.close

    @property
    def is_on(self) -> bool:
        """Whether filters in Python are switched on."""
        return self._settings.config.filter_workers > 0

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code; while filters are off there is none for uploads, so the
        reply is Java's to an unknown code."""
        answers: dict[int, Endpoint] = {
            OwnRequestCode.FILTERS: self.show,
            OwnRequestCode.REMOVE_FILTER: self.remove,
        }
        if self.is_on:
            answers[RequestCode.REGISTER_MESSAGE_FILTER_CLASS] = self.upload
        return answers

    # For pulls.

    def choose(self, group: str, topic: str, text: str | None) -> Choose:
        """The filter of a subscription.

        Args:
            text: the subscription's expression: a filter's name, and perhaps its version.

        Raises:
            SystemFailure: filters in Python are switched off.
            SubscriptionInvalid: the text does not name a filter.
            FilterMissing: the filter is not at this broker; the client uploads it then.
            FilterFailed: the filter was switched off after failures.
        """
        self._check_on()
        name, version = parts_of(text)
        uploaded = self.uploads.find((group, topic, name), version)
        if uploaded is None:
            raise FilterMissing(
                f"filter {text} of group {group}, topic {topic}, is not at this broker; upload it"
            )
        if uploaded.off:
            raise FilterFailed(f"{uploaded.words} is switched off: {uploaded.off}")
        judge = self._judges.of(uploaded)

        async def left_of(read: ReadResult, count_max: int, bytes_max: int) -> ReadResult:
            return await _left_of(judge, read, count_max=count_max, bytes_max=bytes_max)

        return left_of

    def _check_on(self) -> None:
        if not self.is_on:
            raise SystemFailure(
                f"{CANNOT_FILTER} {PYTHON}: its setting filterServerNums (filter_workers) is 0"
            )

    # For operators and clients.

    async def upload(self, command: Command, peer: Peer) -> Reply:
        """Stores an uploaded filter.

        Raises:
            SystemFailure: filters in Python are off, or this machine cannot confine them.
            NoPermission: the client may not upload.
            InvalidParameter: a name or the checksum is wrong.
            SubscriptionInvalid: the source has a mistake; the text names its position.
            SystemBusy: there are too many filters.
        """
        header = command.read(UploadFilter)
        self._check_on()
        source = bytes(command.body)
        try:
            version = version_of(source)
            text = source.decode()
        except (UsageError, UnicodeDecodeError) as error:
            raise InvalidParameter(str(error)) from error
        self._check_names(header.consumer_group, header.topic, header.class_name)
        if header.class_crc and header.class_crc not in (
            body_crc(source), zlib.crc32(source),
        ):  # fmt: skip
            raise InvalidParameter("the source does not have the checksum in the request")
        asked = Upload(
            header.consumer_group, header.topic, header.class_name, version, header.signed_ms or 0
        )
        self._check_right(asked, header.signature, peer)
        if self.uploads.find(asked[:3], version) is None:
            await self._try_out(header.class_name, source)
        # A consumer uploads a missing filter once for each of its queues, so during the trial
        # another upload may have stored it.
        known = self.uploads.find(asked[:3], version)
        if known is None or header.is_again or known is not self.uploads.find(asked[:3]):
            off = "" if known is None or header.is_again else known.off
            await self._keep(Uploaded(*asked[:4], text, self._clock.now_ms(), peer.address, off))
        return Reply(remark=version)

    async def _keep(self, uploaded: Uploaded) -> None:
        for gone in self.uploads.put(uploaded):
            await self._judges.forget(gone)
        logger.info("%s was uploaded by %s", uploaded.words, uploaded.uploaded_by)

    async def _try_out(self, name: str, source: bytes) -> None:
        try:
            fault = await self._judges.try_out(name, source)
        except NotConfined as error:
            raise SystemFailure(str(error)) from error
        if fault is not None:
            raise SubscriptionInvalid(f"filter {name}: {fault}")

    def show(self, command: Command, peer: Peer) -> Reply:
        """All filters, or those of one group."""
        group = command.read(FiltersOf).consumer_group
        found = [self._facts(each) for each in self.uploads if group in (None, each.group)]
        return Reply(body=FilterList(filters=found).encode())

    def _facts(self, each: Uploaded) -> FilterFacts:
        judge = self._judges.known(each)
        return FilterFacts(
            group=each.group,
            topic=each.topic,
            name=each.name,
            version=each.version,
            is_newest=self.uploads.find(each.key) is each,
            is_running=judge is not None and judge.is_running,
            judged=0 if judge is None else judge.judged,
            wanted=0 if judge is None else judge.wanted,
            off=each.off,
            source_bytes=len(each.source.encode()),
            uploaded_by=each.uploaded_by,
            uploaded_ms=each.uploaded_ms,
        )

    async def remove(self, command: Command, peer: Peer) -> Reply:
        """Removes a filter.

        Raises:
            NoPermission: the client may not remove filters.
            FilterMissing: there is no such filter.
        """
        header = command.read(RemoveFilter)
        key = (header.consumer_group, header.topic, header.class_name)
        self._check_right(Upload(*key, REMOVAL, header.signed_ms or 0), header.signature, peer)
        gone = self.uploads.remove(key, header.version or "")
        if not gone:
            raise FilterMissing(f"there is no filter {key[2]} of group {key[0]}, topic {key[1]}")
        for each in gone:
            await self._judges.forget(each)
            logger.info("%s was removed by %s", each.words, peer.address)
        return Reply()

    def _check_names(self, group: str, topic: str, name: str) -> None:
        fault = fault_of_group(group) or fault_of_topic(topic)
        if fault or not is_name(name):
            raise InvalidParameter(fault or f"a filter is named like its function, not {name!r}")

    def _check_right(self, asked: Upload, signature: str | None, peer: Peer) -> None:
        """Checks that a client may upload or remove filters.

        Raises:
            NoPermission: it may not.
        """
        secret = self._settings.config.filter_secret
        if signature is not None and secret:
            if not hmac.compare_digest(asked.signature(secret), signature):
                raise NoPermission("the filter is signed with another secret")
            if abs(self._clock.now_ms() - asked.signed_ms) > _SIGNED_MS:
                raise NoPermission("the filter was not signed just now; are the clocks right?")
            return
        if not _is_in(_host_of(peer), self._networks):
            raise NoPermission(
                f"filters in Python are not accepted from {peer.address}: it is in no network of "
                "filter_uploaders, and the upload is not signed with filter_secret"
            )


def _network(text: str) -> _Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise ConfigError(f"broker.filter_uploaders: {error}") from error


def _host_of(peer: Peer) -> _Host | None:
    """The IP address of a client; None if its address cannot be parsed."""
    try:
        host = ipaddress.ip_address(addresses.split(peer.address)[0].partition("%")[0])
    except (ValueError, UsageError):
        return None
    return host.ipv4_mapped or host if isinstance(host, ipaddress.IPv6Address) else host


def _is_in(host: _Host | None, networks: Sequence[_Network]) -> bool:
    return host is not None and any(host in network for network in networks)


async def _left_of(judge: Judge, read: ReadResult, *, count_max: int, bytes_max: int) -> ReadResult:
    """The messages of a read that a filter chooses.

    Raises:
        FilterFailed: the filter fails at the first record.
    """
    places = records(read)
    if not places:
        return passed_over(read)
    first = places[0].record
    wanted = await judge.judge(first.topic, first.queue_number, shown_at_once(places))
    return chosen(read, places, wanted, count_max=count_max, bytes_max=bytes_max)
