"""What a broker knows of those who change something, for its audit log."""

from __future__ import annotations

from typing import Any

from sprocket.audit.audit_log import AuditLog
from sprocket.audit.trail import AuditedClients, AuditTrail
from sprocket.broker.settings import shown_lines
from sprocket.broker.tables.tables import Tables
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Buffer


def audit_trail(log: AuditLog, tables: Tables) -> AuditTrail:
    """Records the requests of a broker."""
    clients = tables.clients
    return AuditTrail(
        log,
        AuditedClients(client_of=clients.id_of, is_member=clients.is_member),
        bodies={RequestCode.UPDATE_BROKER_CONFIG: _settings},
    )


def _settings(body: Buffer) -> dict[str, Any]:
    return {"settings": shown_lines(bytes(body).decode("utf-8", "replace"))}
