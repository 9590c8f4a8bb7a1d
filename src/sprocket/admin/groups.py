"""Consumer groups: make, delete, list."""

from __future__ import annotations

from sprocket.admin.caller import Caller
from sprocket.message.topic import check_group
from sprocket.protocol.bodies import GroupConfig, GroupTable
from sprocket.protocol.requests.group import AllGroupConfigs, CreateGroup, DeleteGroup


async def create(
    caller: Caller,
    group: str,
    *,
    retry_max_times: int = 16,
    may_broadcast: bool = True,
    is_ordered: bool = False,
    cluster: str | None = None,
) -> list[str]:
    """Makes a consumer group, or changes it, on all masters or those of a cluster.

    Args:
        retry_max_times: deliveries after the first before a message is a dead letter.

    Returns:
        Names of the brokers that have it now.
    """
    check_group(group)
    config = GroupConfig(
        group_name=group,
        retry_max_times=retry_max_times,
        consume_broadcast_enable=may_broadcast,
        consume_message_orderly=is_ordered,
    )
    masters = await caller.masters(cluster=cluster)
    for address in masters.values():
        await caller.ask(address, CreateGroup(), body=config.encode())
    return list(masters)


async def delete(
    caller: Caller, group: str, *, with_offsets: bool = True, cluster: str | None = None
) -> list[str]:
    """Deletes a consumer group, and where it stood, on all masters or those of a cluster.

    No error if there is none.

    Returns:
        Names of the brokers that were told.
    """
    masters = await caller.masters(cluster=cluster)
    for address in masters.values():
        await caller.ask(address, DeleteGroup(group_name=group, clean_offset=with_offsets))
    return list(masters)


async def names(caller: Caller, *, cluster: str | None = None) -> list[str]:
    """Names of the groups that any master knows, sorted."""
    found: set[str] = set()
    for address in (await caller.masters(cluster=cluster)).values():
        reply = await caller.ask(address, AllGroupConfigs())
        found |= GroupTable.decode(reply.body).subscription_group_table.keys()
    return sorted(found)
