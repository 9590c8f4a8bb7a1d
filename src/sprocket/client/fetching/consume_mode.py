"""In which manner a consumer takes part in its group. Values."""

from __future__ import annotations

from typing import NamedTuple


class ConsumeMode(NamedTuple):
    """What differs between push, broadcasting and lite pull consumers, as far as brokers see it.

    Attributes:
        consume_type, message_model: RocketMQ's words for it, as heartbeats say them.
        commits: whether positions are committed without being asked.
        commits_by_pull: whether pulls carry positions too.
        tells_filter: whether pulls say which messages are wanted, instead of heartbeats only.
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


#: Members share the queues; brokers keep the positions.
SHARING = ConsumeMode()
#: Every member reads every queue, and keeps its positions itself.
BROADCASTING = ConsumeMode(message_model="BROADCASTING", commits_by_pull=False)


def polling(*, commits: bool) -> ConsumeMode:
    """The manner of a lite pull consumer."""
    return ConsumeMode(
        "CONSUME_ACTIVELY", commits=commits, commits_by_pull=False, tells_filter=True
    )
