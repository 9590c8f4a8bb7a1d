"""Changes of the attributes of topics and groups, as requests carry them. Pure.

Source: AttributeParser and AttributeUtil of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Mapping


def changed(before: Mapping[str, str], wanted: Mapping[str, str | None] | None) -> dict[str, str]:
    """Attributes after a change.

    Args:
        wanted: values by name; None takes one away; what is not named stays.
    """
    after = {**before, **(wanted or {})}
    return {name: value for name, value in after.items() if value is not None}


def signed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """What differs, as brokers take it: `+name` with the value, or `-name` with an empty one.

    Brokers refuse an attribute without a sign, and one that may not change even if it would not.
    """
    return {
        **{f"-{name}": "" for name in before if name not in after},
        **{f"+{name}": value for name, value in after.items() if before.get(name) != value},
    }
