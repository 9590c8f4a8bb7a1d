"""Lets a call pass or refuses it: its signature first, then the rights that it needs.

The request is not read before the signature is checked. A call that is refused gets the code
UNAUTHORIZED, as from RocketMQ's proxy, and a text that says which right is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any

from sprocket.auth.guard import refusal
from sprocket.base.suggestions import shown
from sprocket.proxy.brokers.accounts import Accounts, KnownAccount
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.call_needs import call_needs
from sprocket.proxy.messages.signatures import CallSignature, signature_in
from sprocket.proxy.messages.statuses import CallRefused
from sprocket.remoting import address as addresses

logger = logging.getLogger(__name__)


class CallGuard:
    """Checks calls.

    Args:
        accounts: the users and their policies.
        authorizes: whether a user must have the rights that its calls need.
    """

    def __init__(self, accounts: Accounts, *, authorizes: bool) -> None:
        self._accounts = accounts
        self._authorizes = authorizes

    def identify(self, call: GrpcCall) -> KnownAccount | Awaitable[KnownAccount]:
        """The user who signed a call; at once if nobody need be asked.

        Raises:
            CallRefused: nobody did, or one who may not.
            SprocketError: nobody knows the user.
        """
        signature = signature_in(call.metadata)
        found = self._accounts.account(signature.user)
        if found is None or isinstance(found, KnownAccount):
            return _checked(signature, found)
        return self._identified(signature, found)

    async def _identified(
        self, signature: CallSignature, asked: Awaitable[KnownAccount | None]
    ) -> KnownAccount:
        return _checked(signature, await asked)

    def judge(self, call: GrpcCall, account: KnownAccount, request: Any) -> None:
        """Returns if a user may make a call.

        Raises:
            CallRefused: it may not.
        """
        if not self._authorizes or account.user.is_super:
            return
        source = addresses.bare(call.address.rpartition(":")[0])
        for need in call_needs(request):
            judgement = account.policies.judge(need, source)
            if not judgement.is_allowed:
                text = refusal(account.user.name, need, source, judgement)
                raise CallRefused(pb.UNAUTHORIZED, text)

    async def admit(self, call: GrpcCall, request: Any) -> None:
        """Returns if a call may be made: for methods that stream.

        Raises:
            CallRefused: it may not.
            SprocketError: nobody knows the user.
        """
        found = self.identify(call)
        self.judge(call, found if isinstance(found, KnownAccount) else await found, request)

    async def close(self) -> None:
        """Cancels what is in progress."""
        await self._accounts.close()


# The signature of nobody is checked too, so that the time does not show which users there are.
def _checked(signature: CallSignature, account: KnownAccount | None) -> KnownAccount:
    secret_key = "" if account is None else account.user.password
    if not signature.is_of(secret_key) or account is None:
        raise CallRefused(
            pb.UNAUTHORIZED,
            f"there is no user {shown(signature.user)} with this secret key: check signature "
            "failed.",
        )
    if not account.user.is_enabled:
        raise CallRefused(pb.UNAUTHORIZED, f"User:{account.user.name} is disabled.")
    return account
