"""Who may use the API, and in whose name it asks the brokers.

Without a file of callers everybody who reaches the API may ask, unsigned: so it then listens at
this machine only, and brokers with users refuse it. A file names callers by a token, by the keys of
a user, or both. With keys the API signs its requests to the brokers in the name of that user, and
the brokers decide what it may do.
"""

from __future__ import annotations

import hashlib
import ipaddress
import tomllib
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sprocket.base.errors import ConfigError
from sprocket.base.secret_files import read_secret_file
from sprocket.console.api import signatures
from sprocket.console.api.problems import ApiRefusal
from sprocket.console.api.signatures import ClaimedSignature, SignedRequest
from sprocket.protocol.signing import Signer

#: A shorter token could be guessed.
TOKEN_CHARACTERS_MIN = 24
_FILE_BYTES_MAX = 1 << 20
#: Signatures that are remembered, so that none counts twice.
_SEEN_MAX = 50_000
_SETTING = "--callers FILE"


@dataclass(frozen=True, slots=True)
class ApiCaller:
    """Somebody who asks.

    Attributes:
        name: for the log.
        signer: signs the requests to the brokers; None for unsigned ones.
        may_change: whether it may change anything, where changes are switched on.
    """

    name: str
    signer: Signer | None = field(default=None, repr=False)
    may_change: bool = True


#: Whoever reaches an API without a file of callers.
ANYBODY = ApiCaller("anybody")


class CallerEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One caller in the file."""

    name: str
    token: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    may_change: bool = False

    def __repr__(self) -> str:
        return f"CallerEntry({self.name!r}, {self.access_key!r})"


class CallersFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file: a table `[[caller]]` for each."""

    caller: list[CallerEntry]


class KnownCallers:
    """Tells who sends a request.

    Args:
        entries: those of the file; None without one.

    Raises:
        ConfigError: an entry is not valid, or two are alike.
    """

    def __init__(self, entries: Sequence[CallerEntry] | None) -> None:
        self.is_open = entries is None
        self._by_token: dict[bytes, ApiCaller] = {}
        self._by_key: dict[str, ApiCaller] = {}
        self._seen: OrderedDict[str, int] = OrderedDict()
        for entry in entries or ():
            self._add(entry)

    @classmethod
    def of_file(cls, path: Path | None) -> KnownCallers:
        """Those of a file; None for no file.

        Raises:
            ConfigError: it cannot be read, others may read it too, or it is not valid.
        """
        return cls(None if path is None else _entries_in(path))

    def _add(self, entry: CallerEntry) -> None:
        if entry.token is None and entry.access_key is None:
            raise ConfigError(f"caller {entry.name!r} has neither token nor access_key")
        if entry.token is not None and len(entry.token) < TOKEN_CHARACTERS_MIN:
            raise ConfigError(
                f"the token of caller {entry.name!r} has fewer than {TOKEN_CHARACTERS_MIN} "
                "characters: others could guess it"
            )
        signer = Signer.of(entry.access_key, entry.secret_key)
        caller = ApiCaller(entry.name, signer, entry.may_change)
        if entry.token is not None:
            digest = _digest(entry.token)
            if digest in self._by_token:
                raise ConfigError(f"caller {entry.name!r} has the token of another one")
            self._by_token[digest] = caller
        if entry.access_key is not None:
            if entry.access_key in self._by_key:
                raise ConfigError(f"caller {entry.name!r} has the access key of another one")
            self._by_key[entry.access_key] = caller

    def check(self, header: str | None) -> None:
        """Checks what can be checked before the body of a request is read.

        Args:
            header: `Authorization`; None if the request has none.

        Raises:
            ApiRefusal: nobody is known by it, whatever the body is.
        """
        self._named(header)

    def caller(self, header: str | None, request: SignedRequest, now_ms: int) -> ApiCaller:
        """Who sends a request.

        Args:
            header: `Authorization`; None if the request has none.

        Raises:
            ApiRefusal: nobody is known by it.
        """
        found, claim = self._named(header)
        if claim is not None:
            self._check_signature(found, claim, request, now_ms)
        return found

    def _named(self, header: str | None) -> tuple[ApiCaller, ClaimedSignature | None]:
        """The caller that a header names, and the signature that is still to be checked."""
        if header is None:
            if self.is_open:
                return ANYBODY, None
            raise ApiRefusal(
                401, "the request has no header Authorization", setting=f"a caller in {_SETTING}"
            )
        if self.is_open:
            raise ApiRefusal(401, "no callers are known here", setting=_SETTING)
        scheme, _, rest = header.partition(" ")
        if scheme.lower() == "bearer":
            if found := self._by_token.get(_digest(rest.strip())):
                return found, None
            raise ApiRefusal(401, "the token is nobody's", setting=f"a caller in {_SETTING}")
        if scheme.upper() == signatures.SCHEME:
            claim = signatures.claimed(rest)
            if claim is not None and (found := self._by_key.get(claim.access_key)):
                return found, claim
            raise _wrong_signature()
        raise ApiRefusal(401, f"Authorization is Bearer or {signatures.SCHEME}, nothing else")

    def _check_signature(
        self, caller: ApiCaller, claim: ClaimedSignature, request: SignedRequest, now_ms: int
    ) -> None:
        signer = caller.signer
        if signer is None or not signatures.is_right(request, claim, signer.secret_key):
            raise _wrong_signature()
        if abs(now_ms - claim.date_ms) > signatures.VALID_MS:
            raise ApiRefusal(401, "the signature is too old, or a clock is wrong: sign again")
        self._forget(now_ms)
        if claim.signature in self._seen:
            raise ApiRefusal(401, "this signature has been used: sign each request anew")
        if len(self._seen) >= _SEEN_MAX:
            raise ApiRefusal(503, "too many signed requests in the last minutes: try later")
        self._seen[claim.signature] = now_ms + 2 * signatures.VALID_MS

    def _forget(self, now_ms: int) -> None:
        """Forgets signatures that are too old to count in any case."""
        while self._seen and next(iter(self._seen.values())) < now_ms:
            self._seen.popitem(last=False)


def _wrong_signature() -> ApiRefusal:
    return ApiRefusal(401, "the signature is nobody's", setting=f"a caller in {_SETTING}")


def _digest(token: str) -> bytes:
    """What tokens are found by: how long finding one takes says nothing about it."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def _entries_in(path: Path) -> list[CallerEntry]:
    file = read_secret_file(path, _FILE_BYTES_MAX)
    file.check()
    try:
        found = msgspec.convert(tomllib.loads(file.content.decode()), CallersFile)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"{path}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: it is nested too deep") from None
    return found.caller


def is_of_this_machine(host: str) -> bool:
    """Whether an address to listen at is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # some other name, whatever it begins with
        return False


def origins_fault(headers: Iterable[tuple[str, str]], host: str) -> str | None:
    """Why a request that a browser sends is refused; None if it comes from here, or from no page.

    A page of another site can have a browser send requests; it cannot change these headers, which
    the browser writes. Clients that are no browsers do not send them.

    Args:
        host: the header `Host`.
    """
    for name, value in headers:
        if name == "sec-fetch-site" and value not in ("same-origin", "none"):
            return "a page of another site sends it"
        if name == "origin" and value.partition("://")[2] != host:
            return "it comes from a page of another origin"
    return None
