"""Why rows could not be written, in the words that the user gets."""

from __future__ import annotations

from sprocket.base.errors import RequestNotSupported, SprocketError


class WriteFailed(SprocketError):
    """Messages could not be written. The text contains topic, queue and reason."""


def explained(error: SprocketError, broker: str) -> SprocketError:
    """An error of staging or publishing, with what helps."""
    if isinstance(error, RequestNotSupported):
        return WriteFailed(
            f"broker {broker} stages no rows, as RocketMQ's own do not: leave out "
            "transactionBrokers, and let consumers drop repeats by idempotencyProperty"
        )
    if "nothing is known of writer" in str(error):
        return WriteFailed(
            f"{error}. If its last rows are there and these are not, begin with this micro-batch: "
            "option transactionBegin"
        )
    return error
