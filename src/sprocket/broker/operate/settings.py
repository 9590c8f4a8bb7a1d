"""Operators' requests about the broker's settings, and requests to clean that need no action.

Source: AdminBrokerProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Callable

from sprocket.base.errors import RemoteProtocolError
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.settings import BrokerSettings
from sprocket.protocol.bodies import DataVersion
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.admin import BrokerConfigReply
from sprocket.remoting.transport import Peer


class SettingRequests:
    """Shows and changes settings.

    Args:
        on_permission: called when the broker's permission has changed.
    """

    def __init__(self, settings: BrokerSettings, *, on_permission: Callable[[], None]) -> None:
        self._settings = settings
        self._on_permission = on_permission
        self._changes = 0

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.GET_BROKER_CONFIG: self.show,
            RequestCode.UPDATE_BROKER_CONFIG: self.change,
            RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: self.nothing_to_do,
            RequestCode.DELETE_EXPIRED_COMMITLOG: self.nothing_to_do,
        }

    def show(self, command: Command, peer: Peer) -> Reply:
        """All settings, one per line, with RocketMQ's names."""
        version = DataVersion(counter=self._changes).encode().decode()
        body = "".join(f"{line}\n" for line in self._settings.lines()).encode()
        return Reply(BrokerConfigReply(version=version), body)

    def change(self, command: Command, peer: Peer) -> Reply:
        """Applies lines of `key=value`; unknown keys are ignored.

        Raises:
            InvalidParameter: a value is invalid, or cannot change while the broker runs.
        """
        try:
            text = bytes(command.body).decode()
        except UnicodeDecodeError as error:
            raise RemoteProtocolError(f"settings are UTF-8 text: {error}") from None
        permission = self._settings.config.permission
        self._settings.change(text)
        self._changes += 1
        if self._settings.config.permission != permission:
            self._on_permission()
        return Reply()

    def nothing_to_do(self, command: Command, peer: Peer) -> Reply:
        """Success without an action: the store cleans by itself."""
        return Reply()
