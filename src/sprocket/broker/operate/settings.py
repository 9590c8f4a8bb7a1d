"""Operators' requests about the broker's settings, and requests to clean that need no action.

Source: AdminBrokerProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sprocket.base.errors import InvalidParameter, RemoteProtocolError
from sprocket.broker.config import BrokerConfig
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.settings import BrokerSettings, shown_lines
from sprocket.delay.timers.counts import Counts
from sprocket.delay.timers.shape import Shape
from sprocket.protocol.bodies import DataVersion
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.admin import BrokerConfigReply, SetReadAhead
from sprocket.remoting.transport import Peer
from sprocket.store.config import StoreConfig
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: The modes of reading ahead, which are Linux's `MADV_NORMAL` and `MADV_RANDOM`.
_AHEAD, _AS_ASKED = 0, 1


class SettingRequests:
    """Shows and changes settings.

    Args:
        on_change: called when settings have changed, with those before.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        store: Store,
        *,
        timer_counts: Counts,
        on_change: Callable[[BrokerConfig, StoreConfig], None],
    ) -> None:
        self._settings = settings
        self._store = store
        self._timer_counts = timer_counts
        self._on_change = on_change
        self._changes = 0

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.GET_BROKER_CONFIG: self.show,
            RequestCode.UPDATE_BROKER_CONFIG: self.change,
            RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: self.nothing_to_do,
            RequestCode.DELETE_EXPIRED_COMMITLOG: self.delete_expired,
            RequestCode.SET_COMMITLOG_READ_MODE: self.read_ahead,
        }

    def show(self, command: Command, peer: Peer) -> Reply:
        """All settings, one per line, with RocketMQ's names."""
        version = DataVersion(counter=self._changes).encode().decode()
        body = "".join(f"{line}\n" for line in self._settings.lines()).encode()
        return Reply(BrokerConfigReply(version=version), body)

    def change(self, command: Command, peer: Peer) -> Reply:
        """Applies lines of `key=value`, all or none.

        Java ignores keys that it does not know. Here they are refused, since a reply of success
        says that what was asked for is done.

        Raises:
            InvalidParameter: a setting is unknown, its value is invalid, or it cannot change while
                the broker runs.
        """
        try:
            text = bytes(command.body).decode()
        except UnicodeDecodeError as error:
            raise RemoteProtocolError(f"settings are UTF-8 text: {error}") from None
        self._change(text, peer)
        return Reply()

    def read_ahead(self, command: Command, peer: Peer) -> Reply:
        """Sets whether the system reads the log's files ahead.

        Raises:
            InvalidParameter: the mode is none of RocketMQ's.
        """
        mode = command.read(SetReadAhead).read_ahead_mode
        if mode not in (_AHEAD, _AS_ASKED):
            raise InvalidParameter("set commitlog readahead mode param value error")
        self._change(f"store.read_ahead={str(mode == _AHEAD).lower()}", peer)
        return Reply(remark=f"set commitlog readahead mode success, mode: {mode}")

    def _change(self, text: str, peer: Peer) -> None:
        before = self._settings.config, self._settings.store
        config, store = self._settings.changed(text)
        self._check_timers(store)
        self._settings.keep(config, store)
        self._settings.apply(config, store)
        self._changes += 1
        if (config, store) != before:
            self._store.change(store)
            self._on_change(*before)
            logger.warning("%s changes settings: %s", peer.address, shown_lines(text))

    def _check_timers(self, store: StoreConfig) -> None:
        """Checks that no waiting message would leave the log before it is stored anew.

        Raises:
            InvalidParameter: one would.
        """
        now = self._settings.store
        is_sooner = Shape.of(store).roll_ms < Shape.of(now).roll_ms
        if now.timers and is_sooner and self._timer_counts.total:
            raise InvalidParameter(
                f"fileReservedTime (store.kept_hours) cannot become {store.kept_hours}, nor "
                f"timerRollWindowSlot (store.timer_roll_slots) {store.timer_roll_slots}: messages "
                "that wait for their time would be deleted with the files that hold them"
            )

    def delete_expired(self, command: Command, peer: Peer) -> Reply:
        """Has expired files of the log deleted now, whatever hours are set for that."""
        self._store.disk_space.remove_expired()
        return Reply()

    def nothing_to_do(self, command: Command, peer: Peer) -> Reply:
        """Success without an action: the store drops entries of queues with the log's files."""
        return Reply()
