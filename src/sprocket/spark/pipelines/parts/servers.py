"""A cluster as pipelines know it: its name servers and access keys.

Gives Spark the options of the `rocketmq` source and sink, and sends an operator's requests from
code without an event loop, or from a notebook, which runs one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from sprocket.base.errors import UsageError

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.remoting.profiles import Profile
    from sprocket.remoting.tls.settings import ClientTls

T = TypeVar("T")

_TIMEOUT_MS = 10_000


@dataclass(frozen=True)
class AccessKeys:
    """Keys for brokers with access control.

    Attributes:
        access_key: names the user.
        secret_key: signs requests; it is never sent to a broker.
        security_token: belongs to temporary keys.
    """

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Servers:
    """A cluster.

    Attributes:
        nameservers: `host:port`, several are separated by `;`.
        keys: None for a cluster without access control.
        tls: how connections speak TLS; None for plain ones.
        profile: where keys and TLS are instead.
    """

    nameservers: str
    keys: AccessKeys | None = None
    tls: ClientTls | None = None
    profile: Profile | None = None

    def __post_init__(self) -> None:
        if self.profile is not None and (self.keys is not None or self.tls is not None):
            raise UsageError("give a profile, or keys and TLS: a profile has both")

    def options(self) -> dict[str, str]:
        """Options of the `rocketmq` source and sink."""
        found = {"namesrvAddr": self.nameservers}
        if self.profile is not None:
            found |= {"profile": self.profile.name, "configFile": self.profile.file}
        if self.keys is not None:
            found["accessKey"] = self.keys.access_key
            found["secretKey"] = self.keys.secret_key
            if self.keys.security_token:
                found["securityToken"] = self.keys.security_token
        if self.tls is not None:
            from sprocket.spark.options.tls import tls_as_options

            found |= tls_as_options(self.tls)
        return found

    def another(
        self,
        nameservers: str | None,
        keys: AccessKeys | None,
        tls: ClientTls | Literal[False] | None,
        profile: Profile | None = None,
    ) -> Servers:
        """A second cluster, for which keys and TLS of this one count if it has none of its own.

        Args:
            nameservers: None for those of its profile.
            tls: False for plain connections, whatever this cluster's are.
            profile: of the second cluster. Nothing of this one counts beside it.

        Raises:
            UsageError: nothing says where the cluster is, or as whom it is asked is said twice.
            ConfigError: the profile cannot be read.
        """
        if not nameservers and profile is not None:
            nameservers = ";".join(profile.read().nameservers)
        if not nameservers:
            raise UsageError("which target? Give to-nameserver, or a to-profile with name servers")
        if profile is not None:
            return Servers(nameservers, keys, tls or None, profile)
        if self.profile is not None and keys is None and tls is None:
            return Servers(nameservers, profile=self.profile)
        its_tls = self.tls if tls is None else tls or None
        return Servers(nameservers, keys or self.keys, its_tls)

    async def answer(self, question: Callable[[Caller], Awaitable[T]]) -> T:
        """Awaits `question` with a caller for this cluster, and returns its result."""
        from sprocket.admin.caller import Caller
        from sprocket.protocol.signing import Signer
        from sprocket.remoting.pool import Pool
        from sprocket.spark.options import values

        addresses = values.addresses("nameservers", self.nameservers)
        keys, signer, tls = self.keys, None, self.tls
        if keys is not None:
            signer = Signer.of(keys.access_key, keys.secret_key, keys.security_token)
        if self.profile is not None:
            access = self.profile.read()
            signer, tls = access.signer(), access.tls_of_client()
        async with Pool(signer=signer, tls=tls) as pool:
            return await question(Caller(pool, addresses, timeout_ms=_TIMEOUT_MS))

    def ask(self, question: Callable[[Caller], Awaitable[T]]) -> T:
        """The same for synchronous code: runs it on a loop in a thread of its own."""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: asyncio.run(self.answer(question))).result()
