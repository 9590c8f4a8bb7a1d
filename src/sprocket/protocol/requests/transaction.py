"""Ending and checking transactions.

Source: EndTransactionRequestHeader, CheckTransactionState…, ResumeCheckHalfMessage… of RocketMQ
4.9 and 5.x.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header, Int, Long

#: Values of `EndTransaction.commit_or_rollback`. Source: MessageSysFlag.
UNKNOWN = 0
COMMIT = 8
ROLLBACK = 12


class EndTransaction(Header, kw_only=True):
    """Commits or rolls back a half message. Clients send it one-way."""

    code: ClassVar[int] = 37

    topic: str | None = None
    producer_group: str
    tran_state_table_offset: Long
    commit_log_offset: Long
    commit_or_rollback: Int
    from_transaction_check: bool = False
    msg_id: str | None = None
    transaction_id: str | None = None
    bname: str | None = None


class CheckTransaction(Header, kw_only=True):
    """Broker to producer, one-way: asks for a transaction's outcome. Body: the half's record."""

    code: ClassVar[int] = 39

    topic: str | None = None
    tran_state_table_offset: Long
    commit_log_offset: Long
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    bname: str | None = None


class ResumeCheck(Header, kw_only=True):
    """Lets the broker check a half message again that it has given up."""

    code: ClassVar[int] = 323

    topic: str | None = None
    msg_id: str | None = None
