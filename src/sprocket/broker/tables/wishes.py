"""What members of a consumer group want, and how they disagree. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sprocket.protocol.bodies import SubscriptionData

#: How people call the types of consumers.
_KINDS = {"CONSUME_PASSIVELY": "push", "CONSUME_ACTIVELY": "pull"}


class MemberWish(NamedTuple):
    """What a member wants; the members of a group must want the same.

    Attributes:
        subscriptions: topic, type of the expression, and expression.
    """

    consume_type: str
    message_model: str
    subscriptions: frozenset[tuple[str, str, str]]

    @classmethod
    def of(
        cls, consume_type: str, message_model: str, subscriptions: Iterable[SubscriptionData]
    ) -> MemberWish:
        """What a heartbeat says."""
        wanted = frozenset(
            (each.topic, each.expression_type or "TAG", each.sub_string or "*")
            for each in subscriptions
        )
        return cls(consume_type, message_model, wanted)


def discord(group: str, members: Mapping[MemberWish, str]) -> str:
    """How members of a group disagree, for people.

    Args:
        members: two or more wishes, and the client id of a member that has each.
    """
    (one, first), (other, second) = list(members.items())[:2]
    if one[:2] != other[:2]:
        kinds = [f"{_KINDS.get(each[0], each[0])} {each[1]}" for each in (one, other)]
        differ = f"{first} consumes as {kinds[0]}, {second} as {kinds[1]}"
    else:
        mine, theirs = one.subscriptions, other.subscriptions
        words = _in_words(mine - theirs), _in_words(theirs - mine)
        differ = f"{first} subscribes {words[0]}, {second} {words[1]}"
    return (
        f"members of consumer group {group} disagree, so that some messages stay unread: {differ}; "
        "all members of a group need the same subscriptions"
    )


def _in_words(subscriptions: Iterable[tuple[str, str, str]]) -> str:
    """Subscriptions that others do not have, for people."""
    named = [f"{topic} by {expression!r}"[:200] for topic, _, expression in sorted(subscriptions)]
    rest = f" and {len(named) - 3} more" if len(named) > 3 else ""
    return (", ".join(named[:3]) + rest) or "nothing else"
