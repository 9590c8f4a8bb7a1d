"""How a broker becomes a member of its group, keeps its number, and shows that it lives.

Numbers go from 1 on and belong to a broker for ever. A new one is written down with a check code
before it is asked for, so a crash in between, or a lost answer, costs no number and gives none to
two brokers.
"""

from __future__ import annotations

import asyncio

from sprocket.base.ports import Entropy
from sprocket.election.elector import ElectionRefused, ElectorUnavailable
from sprocket.election.group_state import MemberRecord
from sprocket.election.identity import IdentityFile, NumberDraft
from sprocket.election.leased_keys import Compare, GrantedLease, LeasedKeys, LeaseGone, Picture, Put

#: How long a start waits for the sign of life of another process with its number to end: some
#: leases, and longer than the shortest lease that servers grant.
_LEASES_WAITED, _SECONDS_WAITED = 2.0, 5.0


class GroupMembership:
    """The membership of one broker.

    Args:
        keys: the store of keys.
        identity: where the number is kept.
        entropy: for check codes, and for the name of this run of the broker.
        prefix: of the group's keys, with `/` at its end.
        lease_seconds: how long the sign of life lasts.
        priority: of this broker.

    Attributes:
        id: its number; 0 before it has joined.
    """

    def __init__(
        self,
        keys: LeasedKeys,
        identity: IdentityFile,
        entropy: Entropy,
        prefix: str,
        lease_seconds: float,
        priority: int,
    ) -> None:
        self.id = 0
        self._keys = keys
        self._identity = identity
        self._entropy = entropy
        self._prefix = prefix
        self._lease_seconds = lease_seconds
        self._priority = priority
        #: The value of the sign of life: this run's, at its address.
        self._sign = ""
        self._address = ""
        self._lease: GrantedLease | None = None

    async def join(self, address: str, replication_address: str) -> int:
        """Finds or gets the number, and signs in.

        Raises:
            ElectorUnavailable, ElectionRefused, OSError: as `Elector.join`.
        """
        self._address = address
        self._sign = f"{address} {self._entropy.token(8).hex()}"
        number = self._identity.load()
        record = MemberRecord(address, replication_address, self._priority, "")
        if number is None:
            number = await self._new_number(record)
            self._identity.save(number)
        else:
            await self._renew(number, record)
        self.id = number
        give_up = asyncio.get_running_loop().time() + max(
            self._lease_seconds * _LEASES_WAITED, _SECONDS_WAITED
        )
        while True:
            try:
                await self.show_life()
            except ElectionRefused:
                if asyncio.get_running_loop().time() >= give_up:
                    raise
            else:
                return number
            await asyncio.sleep(self._lease_seconds / 10)

    async def show_life(self) -> float:
        """Keeps the lease alive, or signs in with a new one.

        Returns:
            For how many seconds it lasts, counted from before this call.

        Raises:
            ElectorUnavailable: the store does not answer.
            ElectionRefused: another process shows life under this number.
        """
        if self._lease is not None:
            seconds = await self._keys.keep_alive(self._lease.id)
            if seconds > 0:
                return seconds
            self._lease = None
        key = f"{self._prefix}alive/{self.id}"
        found = (await self._keys.get(key)).keys.get(key)
        if found is not None and found.value.partition(" ")[0] != self._address:
            raise ElectionRefused(
                f"the number {self.id} of this broker is in use by another one at "
                f"{found.value.partition(' ')[0]}: was its folder copied? Remove "
                f"{self._identity.path} in the copy: it then gets a new number"
            )
        compare = Compare(key, 0 if found is None else found.revision)
        lease = await self._keys.grant(self._lease_seconds)
        try:
            made = await self._keys.transact([compare], [Put(key, self._sign, lease.id)])
        except LeaseGone as error:
            raise ElectorUnavailable("the lease ended before it was used") from error
        if not made.is_done:
            raise ElectorUnavailable("another process signs in with this number now")
        self._lease = lease
        return lease.seconds

    def is_shown(self, picture: Picture) -> bool:
        """Whether others see the sign of life of this very run."""
        found = picture.keys.get(f"{self._prefix}alive/{self.id}")
        return found is not None and found.value == self._sign

    def forget_lease(self) -> None:
        """Signs in with a new lease next time."""
        self._lease = None

    async def leave(self) -> None:
        """Ends the lease.

        Raises:
            ElectorUnavailable: the store does not answer; the lease ends by itself.
        """
        lease, self._lease = self._lease, None
        if lease is not None:
            await self._keys.revoke(lease.id)

    async def _new_number(self, record: MemberRecord) -> int:
        """Gets a number that nobody has had, or finds the one that was asked for before a crash."""
        draft = self._identity.load_draft()
        while True:
            picture = await self._keys.get(f"{self._prefix}members/")
            records = MemberRecord.all_in(picture, self._prefix)
            if draft is None or (
                draft.number in records and records[draft.number].check_code != draft.check_code
            ):
                draft = NumberDraft(max(records, default=0) + 1, self._entropy.token(8).hex())
                self._identity.save_draft(draft)
            found = picture.keys.get(f"{self._prefix}members/{draft.number}")
            put = Put(
                f"{self._prefix}members/{draft.number}",
                record._replace(check_code=draft.check_code).encode(),
            )
            revision = 0 if found is None else found.revision
            made = await self._keys.transact([Compare(put.key, revision)], [put])
            if made.is_done:
                return draft.number

    async def _renew(self, number: int, record: MemberRecord) -> None:
        """Writes the present addresses of a member that has a number, if they have changed."""
        key = f"{self._prefix}members/{number}"
        while True:
            found = (await self._keys.get(key)).keys.get(key)
            known = MemberRecord.all_in(Picture(0, {key: found}), self._prefix) if found else {}
            code = known[number].check_code if number in known else self._entropy.token(8).hex()
            put = Put(key, record._replace(check_code=code).encode())
            if found is not None and found.value == put.value:
                return
            revision = 0 if found is None else found.revision
            if (await self._keys.transact([Compare(key, revision)], [put])).is_done:
                return
