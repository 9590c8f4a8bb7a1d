"""How calls end: the codes of the service, and which error means which. Pure.

Source: ResponseBuilder and GrpcProxyException of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

from collections.abc import Iterable

from sprocket.base.errors import (
    CallTimeout,
    ReplyError,
    RouteNotFound,
    SprocketError,
    TopicNotFound,
)
from sprocket.proxy.messages import rocketmq_pb2 as pb

#: Texts in replies are cut to this many characters: what a broker says may hold a whole request.
_TEXT_MAX = 1000


class CallRefused(SprocketError):
    """A call, or an entry of one, is refused.

    Attributes:
        code: the code of the reply.
    """

    def __init__(self, code: pb.Code, text: str) -> None:
        super().__init__(text)
        self.code = code


#: The codes of brokers that have one of their own here; all others are internal errors.
_OF_BROKERS: dict[int, pb.Code] = {
    0: pb.OK,
    2: pb.TOO_MANY_REQUESTS,
    3: pb.NOT_IMPLEMENTED,
    26: pb.CONSUMER_GROUP_NOT_FOUND,
    2017: pb.LITE_TOPIC_QUOTA_EXCEEDED,
    2018: pb.LITE_SUBSCRIPTION_QUOTA_EXCEEDED,
}


def status(code: pb.Code, text: str | None = None) -> pb.Status:
    """A status; without a text it says the code's name."""
    return pb.Status(code=code, message=name_of(code) if text is None else text[:_TEXT_MAX])


def name_of(code: pb.Code) -> str:
    """The name of a code."""
    return str(pb.Code.Name(code))


def status_of_error(error: BaseException) -> pb.Status:
    """The status that tells a client of an error."""
    return status(code_of_error(error), _text_of(error))


def code_of_error(error: BaseException) -> pb.Code:
    """The code that stands for an error."""
    if isinstance(error, CallRefused):
        return error.code
    if isinstance(error, TopicNotFound | RouteNotFound):
        return pb.TOPIC_NOT_FOUND
    if isinstance(error, ReplyError):
        return code_of_broker(error.code)
    if isinstance(error, CallTimeout):
        return pb.PROXY_TIMEOUT
    return pb.INTERNAL_SERVER_ERROR


def code_of_broker(code: int) -> pb.Code:
    """The code that stands for a broker's response code."""
    return _OF_BROKERS.get(code, pb.INTERNAL_SERVER_ERROR)


def _text_of(error: BaseException) -> str:
    if isinstance(error, ReplyError):
        return error.remark or str(error.code)
    return str(error) if isinstance(error, SprocketError) else "internal error"


def status_of_entries(codes: Iterable[pb.Code], empty: str) -> pb.Status:
    """The status of a reply whose entries have their own.

    Args:
        codes: those of the entries.
        empty: the text if there is no entry.
    """
    different = set(codes)
    if not different:
        return status(pb.INTERNAL_SERVER_ERROR, empty)
    return status(different.pop() if len(different) == 1 else pb.MULTIPLE_RESULTS)
