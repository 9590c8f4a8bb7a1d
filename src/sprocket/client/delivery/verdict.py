"""What a listener's result, or its failure, means for each of its messages."""

from __future__ import annotations

import logging

from sprocket.client.base.subscription import Later
from sprocket.client.base.user_code import is_from_outside
from sprocket.message.message import StoredMessage

logger = logging.getLogger(__name__)

#: None: all are consumed. Else for each message, in their order, None or when it comes again.
Verdict = list[Later | None] | None


def verdict_on(result: object, count: int) -> Verdict:
    """What a listener's result says of `count` messages; nonsense means later for all."""
    if result is None:
        return None
    if isinstance(result, Later) and result.is_right:
        return [result] * count
    if isinstance(result, list | tuple) and len(result) == count:
        if all(each is None for each in result):
            return None
        if all(each is None or (isinstance(each, Later) and each.is_right) for each in result):
            return list(result)
    logger.error(
        "a listener returns None, Later, or of a batch a list of those for each of its %d messages,"
        " not %r; taken as Later()",
        count,
        result,
    )
    return [Later()] * count


def raised(error: BaseException, message: StoredMessage) -> Later:
    """What it means for a message that its listener raised something.

    Raises:
        BaseException: the error, if it does not come from the listener.
    """
    if is_from_outside(error):
        raise error
    logger.warning(
        "the listener failed at %s, offset %d; it comes again later",
        message.queue,
        message.queue_offset,
        exc_info=error,
    )
    return Later()
