"""How a new broker gets its number from RocketMQ's controller.

It asks for the next number, keeps it with a check code in a temporary file, and applies for it. The
controller takes the same application twice, so after a crash or a lost answer the broker applies
again for what is in the file. RocketMQ's broker drops the file after any failure, and leaves a gap.

Source: ReplicasManager.register, ReplicasInfoManager.applyBrokerId of RocketMQ 5.3.3.
"""

from __future__ import annotations

import logging

from sprocket.election.controller_calls import ControllerCalls, ControllerRefused
from sprocket.election.elector import ElectorUnavailable
from sprocket.election.identity import IdentityFile, NumberDraft
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.requests.election import ApplyForMember, NextMember, NextMemberReply

logger = logging.getLogger(__name__)

#: How often a new member asks for a number of which another one was quicker to apply.
_APPLICATIONS = 10
_FIRST = 1


async def new_number(
    calls: ControllerCalls, identity: IdentityFile, *, names: tuple[str, str], check_code: str
) -> int:
    """A number of its own for a new broker, which is in its file when this returns.

    Args:
        names: of the cluster and of the broker.
        check_code: the broker's address, a semicolon, and something that no other broker has.

    Raises:
        ElectionRefused: the controller refuses it.
        ElectorUnavailable: it does not answer, or others were quicker each time.
        OSError: the number cannot be kept.
    """
    cluster, name = names
    draft = identity.load_draft()
    for _ in range(_APPLICATIONS):
        if draft is None:
            reply = await calls.ask(NextMember(cluster_name=cluster, broker_name=name))
            number = reply.read(NextMemberReply).next_broker_id or _FIRST
            draft = NumberDraft(number, check_code)
            identity.save_draft(draft)
        application = ApplyForMember(
            cluster_name=cluster,
            broker_name=name,
            applied_broker_id=draft.number,
            register_check_code=draft.check_code,
        )
        try:
            await calls.ask(application)
        except ControllerRefused as error:
            if error.code != ResponseCode.CONTROLLER_BROKER_ID_INVALID:
                raise
            draft = None  # another new member was quicker
            continue
        identity.save(draft.number)
        logger.info("broker %s has number %d in its group", name, draft.number)
        return draft.number
    raise ElectorUnavailable(f"no number for broker {name}: others were quicker each time")
