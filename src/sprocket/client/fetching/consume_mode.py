"""The consume modes: how a consumer takes part in its group. These are plain values."""

from __future__ import annotations

from typing import NamedTuple


class ConsumeMode(NamedTuple):
    """What brokers see of the difference between push, broadcasting and lite pull consumers.

    Attributes:
        consume_type, message_model: RocketMQ's names of the mode, as in heartbeats.
        commits: whether offsets are committed automatically.
        commits_by_pull: whether pulls carry the offset to commit too.
        tells_filter: whether pulls contain the filter, which heartbeats always contain.
    """

    consume_type: str = "CONSUME_PASSIVELY"
    message_model: str = "CLUSTERING"
    commits: bool = True
    commits_by_pull: bool = True
    tells_filter: bool = False

    @property
    def is_broadcasting(self) -> bool:
        """Whether every member reads every queue."""
        return self.message_model == "BROADCASTING"


#: Members share the queues, and brokers store the offsets.
SHARING = ConsumeMode()
#: Every member reads every queue and stores its own offsets.
BROADCASTING = ConsumeMode(message_model="BROADCASTING", commits_by_pull=False)
#: Messages are popped; only the group's retry topic is pulled, and shared.
POPPING = ConsumeMode("CONSUME_POP")


def polling(*, commits: bool) -> ConsumeMode:
    """Returns the mode of a lite pull consumer."""
    return ConsumeMode(
        "CONSUME_ACTIVELY", commits=commits, commits_by_pull=False, tells_filter=True
    )
