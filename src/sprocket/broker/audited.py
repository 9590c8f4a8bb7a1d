"""Where a broker records who changes something, and what it knows of them."""

from __future__ import annotations

from typing import Any

from sprocket.audit.audit_log import AuditLog
from sprocket.audit.recorder import AuditRecorder
from sprocket.audit.trail import AuditedClients, AuditTrail
from sprocket.base.ports import Clock
from sprocket.broker.parts import BrokerParts
from sprocket.broker.place import Location
from sprocket.broker.sending.audit_topic import AuditTopic
from sprocket.broker.settings import BrokerSettings, shown_lines
from sprocket.broker.tables.tables import Tables
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Buffer


def audit_recorder(
    files: AuditLog | None,
    parts: BrokerParts,
    settings: BrokerSettings,
    *,
    clock: Clock,
    place: Location,
) -> AuditRecorder | None:
    """What keeps the entries of a broker: its files, its topic, or both; None if neither is set."""
    config = settings.config
    if config.audit_topic is None:
        return files
    return AuditTopic(
        config.audit_topic,
        parts.ingress,
        parts.stamp,
        server=config.name,
        clock=clock,
        host=place.packed,
        files=files,
        is_slave=lambda: parts.replication.is_slave,
    )


def audit_trail(log: AuditRecorder, tables: Tables) -> AuditTrail:
    """Records the requests of a broker."""
    clients = tables.clients
    return AuditTrail(
        log,
        AuditedClients(
            user_of=lambda command: command.user or "",
            client_of=clients.id_of,
            is_member=clients.is_member,
        ),
        bodies={RequestCode.UPDATE_BROKER_CONFIG: _settings},
    )


def _settings(body: Buffer) -> dict[str, Any]:
    return {"settings": shown_lines(bytes(body).decode("utf-8", "replace"))}
