"""Converts a listener's result or exception into a verdict on each of its messages."""

from __future__ import annotations

import logging

from sprocket.client.base.subscription import Later
from sprocket.client.base.user_code import is_from_outside
from sprocket.message.message import StoredMessage

logger = logging.getLogger(__name__)

#: None: all messages are consumed. Else, in order of the messages, None or a `Later` for each.
Verdict = list[Later | None] | None


def verdict_on(result: object, count: int) -> Verdict:
    """Returns the verdict of a result on `count` messages; an invalid result means `Later()`."""
    if result is None:
        return None
    if isinstance(result, Later) and result.is_right:
        return [result] * count
    if isinstance(result, list | tuple) and len(result) == count:
        if all(each is None for each in result):
            return None
        if all(each is None or (isinstance(each, Later) and each.is_right) for each in result):
            return list(result)
    # An error would end the worker, and success would lose messages: a retry does neither.
    logger.error(
        "a listener returns None or Later, or for a batch a list of these with one for each of its"
        " %d messages, not %r; it counts as Later()",
        count,
        result,
    )
    return [Later()] * count


def raised(error: BaseException, message: StoredMessage) -> Later:
    """Returns the verdict on a message whose listener raised an exception, after logging it.

    Raises:
        BaseException: the error itself, if it does not come from the listener.
    """
    if is_from_outside(error):
        raise error
    logger.warning(
        "the listener failed at %s, offset %d; the message will be redelivered",
        message.queue,
        message.queue_offset,
        exc_info=error,
    )
    return Later()
