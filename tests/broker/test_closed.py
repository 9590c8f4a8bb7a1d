"""What a closed broker lets pass: each of its requests, by who makes it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, cast

import pytest

from sprocket.auth.needs import RULES, needs_of
from sprocket.auth.policies import PolicyEntry, UserPolicies
from sprocket.base.errors import CallTimeout, ConfigError, StoreError
from sprocket.protocol.bodies import (
    AckBatchBody,
    AckItem,
    AssignmentQuery,
    CheckClientBody,
    ConsumerData,
    GroupConfig,
    GroupConfigList,
    HeartbeatBody,
    LockBody,
    Queue,
    RequestMode,
    SubscriptionData,
    TopicConfig,
    TopicConfigList,
)
from sprocket.protocol.bodies.lite import LiteSubscriptionBody, LiteSubscriptionEntry
from sprocket.protocol.codes import OwnRequestCode, RequestCode
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.admin import BrokerState, UpdateBrokerConfig
from sprocket.protocol.requests.send import SendBack
from sprocket.protocol.requests.transaction import COMMIT, EndTransaction
from sprocket.protocol.signing import Signer
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.loop import simulate
from tests.broker.accounts import (
    CLOSED,
    REFUSED,
    ROOT_USER,
    allow,
    entry,
    make_user,
    play_closed,
)
from tests.broker.parts import ROOT, SUCCESS, Asker, another, new_disk, pull_of, serving

#: Values of all fields that requests have, as far as somebody needs rights for them.
FIELDS = {
    "topic": "T", "b": "T", "group": "g", "consumerGroup": "g", "groupName": "g", "srcGroup": "g",
    "destGroup": "h", "parentTopic": "T", "queueId": "0", "e": "0",
}  # fmt: skip
BODIES: dict[int, bytes] = {
    RequestCode.HEART_BEAT: HeartbeatBody(
        client_id="c",
        consumers=[ConsumerData(group_name="g", subscriptions=[SubscriptionData(topic="T")])],
    ).encode(),
    RequestCode.CHECK_CLIENT_CONFIG: CheckClientBody(
        group="g", subscription_data=SubscriptionData(topic="T")
    ).encode(),
    RequestCode.QUERY_ASSIGNMENT: AssignmentQuery(consumer_group="g", topic="T").encode(),
    RequestCode.SET_MESSAGE_REQUEST_MODE: RequestMode(consumer_group="g", topic="T").encode(),
    RequestCode.LITE_SUBSCRIPTION_CTL: LiteSubscriptionBody(
        subscription_set=[LiteSubscriptionEntry(group="g", topic="T")]
    ).encode(),
    RequestCode.BATCH_ACK_MESSAGE: AckBatchBody(
        acks=[AckItem(consumer_group="g", topic="T")]
    ).encode(),
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: TopicConfigList(
        topic_config_list=[TopicConfig(topic_name="T"), TopicConfig(topic_name="U")]
    ).encode(),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: GroupConfig(group_name="g").encode(),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: GroupConfigList(
        group_config_list=[GroupConfig(group_name="g"), GroupConfig(group_name="h")]
    ).encode(),
    **dict.fromkeys(
        (RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ),
        LockBody(consumer_group="g", client_id="c", mq_set=[Queue(topic="T")]).encode(),
    ),
}
#: Requests of brokers alone: nobody but a super user may make them.
NOBODYS = {
    OwnRequestCode.ESCAPED_MESSAGES,
    OwnRequestCode.STATE_CHANGES,
    OwnRequestCode.HELD_LEASES,
    OwnRequestCode.PROXIED_CLIENTS,
}


@dataclass
class Raw:
    """A request of any code."""

    code: int
    reply = None

    def to_fields(self) -> dict[str, str]:
        return dict(FIELDS)


async def refusal(asker: Asker, code: int) -> str | None:
    """Why the guard refuses a request of a code; None if it does not."""
    header = cast(Header, Raw(code))
    try:
        reply = await asker.call(header, BODIES.get(code, b""), seconds=1)
    except CallTimeout:
        return None  # it is held, or has no reply
    text = reply.remark or ""
    by_guard = ("not signed", "check signature", "no permission to access", "only super users")
    return text if reply.code == REFUSED and any(each in text for each in by_guard) else None


def needed(code: int) -> list[PolicyEntry]:
    needs = needs_of(Command(code, source=dict(FIELDS), body=BODIES.get(code, b"")), "C")
    assert needs is not None
    return [entry(str(need.resource), need.actions[0]) for need in needs]


def test_each_request_passes_for_who_has_exactly_the_rights_of_its_row() -> None:
    async def test(nobody: Asker, root: Asker) -> None:
        accounts = nobody.broker._parts.tables.accounts
        ann = await make_user(root, "ann")
        dispatch = nobody.broker._dispatch
        assert dispatch is not None
        codes = sorted(dispatch.counts.keys() - {-1})
        assert set(codes) - RULES.keys() == NOBODYS
        async with another(nobody, ann) as asker, another(nobody, Signer("ann", "no")) as liar:
            for code in codes:
                accounts.policies.pop("ann", None)
                assert "not signed" in (await refusal(nobody, code) or ""), code
                assert "check signature" in (await refusal(liar, code) or ""), code
                if code in NOBODYS:
                    accounts.policies["ann"] = UserPolicies([entry("*", "All")])
                    assert "only super users" in (await refusal(asker, code) or ""), code
                    continue
                entries = needed(code)
                for left_out in entries:
                    rest = [each for each in entries if each is not left_out]
                    accounts.policies["ann"] = UserPolicies(rest)
                    text = await refusal(asker, code) or ""
                    assert f"access {left_out.resource} from" in text, (code, text)
                    denied = PolicyEntry.of(str(left_out.resource), ["All"], "Deny")
                    accounts.policies["ann"] = UserPolicies([entry("*", "All"), denied])
                    assert "its policy says Deny" in (await refusal(asker, code) or ""), code
                accounts.policies["ann"] = UserPolicies(entries)
                assert entries, code
                assert await refusal(asker, code) is None, code

    play_closed(test, cluster="C", drain_ms=0)


@pytest.mark.parametrize("part", [0, 1, 2, 3])
def test_a_super_user_passes_everywhere(part: int) -> None:
    async def test(nobody: Asker, root: Asker) -> None:
        dispatch = nobody.broker._dispatch
        assert dispatch is not None
        for code in sorted(dispatch.counts.keys() - {-1})[part::4]:
            assert await refusal(root, code) is None, code

    play_closed(test, drain_ms=0)


def test_a_code_that_nobody_serves_is_hidden_from_who_is_not_known() -> None:
    async def test(nobody: Asker, root: Asker) -> None:
        assert await nobody.code(cast(Header, Raw(99))) == REFUSED
        assert await root.code(cast(Header, Raw(99))) == 3

    play_closed(test)


def test_an_open_broker_asks_for_no_signature() -> None:
    async def main() -> None:
        async with serving(authentication=False) as asker, another(asker, ROOT_USER) as signing:
            await asker.create("T")
            await signing.send("T")

    simulate(lambda network: main())


def test_sends_that_come_together_are_each_judged() -> None:
    async def test(nobody: Asker, root: Asker) -> None:
        await root.create("T")
        await root.create("U")
        ann = await make_user(root, "ann")
        await allow(root, "ann", ("Topic:T", "Pub"))
        async with another(nobody, ann) as asker:
            await asker.send("T")
            sent = await asyncio.gather(
                *(asker.send(topic) for topic in "TTUTUUTT"), return_exceptions=True
            )
            assert [isinstance(each, dict) for each in sent] == [
                topic == "T" for topic in "TTUTUUTT"
            ]
        assert len(await root.bodies("T")) == 6
        assert await root.bodies("U") == []

    play_closed(test)


def test_a_message_that_one_may_not_read_cannot_be_sent_back_into_ones_own_group() -> None:
    async def test(nobody: Asker, root: Asker) -> None:
        await root.create("secret")
        await root.create("T")
        await root.send("secret", b"for others")
        await root.send("T", b"for all")
        (hidden,) = (await root.pull("secret")).messages
        (plain,) = (await root.pull("T")).messages
        ann = await make_user(root, "ann")
        await allow(root, "ann", ("Group:g", "Sub"), ("Topic:T", "Sub"))
        assert await root.call(pull_of("T"))  # the group is made
        async with another(nobody, ann) as asker:
            await asker.beat("g", topics={"T": "*"})

            def back(log_offset: int) -> SendBack:
                return SendBack(
                    offset=log_offset, group="g", delay_level=1, origin_topic="T",
                    unit_mode=False, max_reconsume_times=16,
                )  # fmt: skip

            assert await asker.code(back(hidden.log_offset)) == REFUSED
            assert await asker.code(back(plain.log_offset)) == SUCCESS
            await asyncio.sleep(3)
            (again,) = (await root.pull("%RETRY%g")).messages
            assert again.body == b"for all"
            assert await asker.code(back(again.log_offset)) == SUCCESS  # of its own retry topic

    play_closed(test)


def test_a_transaction_of_a_topic_that_one_may_not_send_to_cannot_be_ended() -> None:
    async def test(nobody: Asker, root: Asker) -> None:
        await root.create("T")
        sent = await root.send("T", TRAN_MSG="true", PGROUP="p", UNIQ_KEY="u")
        ann = await make_user(root, "ann")
        await allow(root, "ann", ("Topic:mine", "Pub"))
        async with another(nobody, ann) as asker:

            def end(topic: str | None) -> EndTransaction:
                return EndTransaction(
                    producer_group="p", tran_state_table_offset=int(sent["queueOffset"]),
                    commit_log_offset=int(sent["msgId"][16:], 16), commit_or_rollback=COMMIT,
                    from_transaction_check=False, msg_id="u", transaction_id="u", topic=topic,
                )  # fmt: skip

            for topic in (None, "mine", "T"):
                assert await asker.code(end(topic)) == REFUSED, topic
            assert await root.bodies("T") == []
            assert await root.code(end("T")) == SUCCESS
            assert await root.bodies("T") == [b"x"]

    play_closed(test)


def test_settings_of_users_are_refused_while_the_broker_runs_and_not_shown() -> None:
    async def test(nobody: Asker, root: Asker) -> None:
        for line in (
            "authenticationEnabled=false", "authorizationEnabled=false",
            "authenticationWhitelist=10", "authorizationWhitelist=10",
            'initAuthenticationUser={"username":"x","password":"y"}',
            'innerClientAuthenticationCredentials={"accessKey":"x","secretKey":"y"}',
        ):  # fmt: skip
            reply = await root.call(UpdateBrokerConfig(), line.encode())
            assert "cannot be changed while the broker runs" in (reply.remark or ""), line
        shown = (await root.call(cast(Header, Raw(RequestCode.GET_BROKER_CONFIG)))).body
        assert b"root's" not in bytes(shown)
        assert b"authenticationEnabled=true" in bytes(shown)

    play_closed(test)


# First users, and the file.


def test_first_users_are_made_once_and_stay_as_they_were_changed() -> None:
    disk = new_disk()

    async def test(nobody: Asker, root: Asker) -> None:
        await make_user(root, "ann")
        assert await root.code(BrokerState()) == SUCCESS

    async def again(nobody: Asker, root: Asker) -> None:
        assert await root.code(BrokerState()) == SUCCESS
        assert sorted(nobody.broker._parts.tables.accounts.users) == ["ann", "root"]

    play_closed(test, disk)
    play_closed(again, disk, first_user='{"username":"root","password":"other"}')


def start(disk: MemoryDisk | None = None, **settings: Any) -> None:
    async def main() -> None:
        async with serving(disk, **settings):
            pass

    simulate(lambda network: main())


def test_a_closed_broker_without_a_super_user_does_not_start() -> None:
    with pytest.raises(ConfigError, match="no super user is enabled"):
        start(authentication=True)
    with pytest.raises(ConfigError, match="a first user of the settings"):
        start(first_user='{"username":" ","password":"x"}')


@pytest.mark.parametrize("text", ["", "{", "[]", '{"users":[]}', '{"users":{"a":{}}}'])
def test_a_file_of_users_that_cannot_be_read_stops_the_start(text: str) -> None:
    disk = new_disk()
    start(disk, **CLOSED)
    path = f"{ROOT}/config/accounts.json"
    saved = disk.read(path)
    assert saved is not None
    assert json.loads(saved)["users"]["root"]["userType"] == "Super"
    assert disk.read(f"{path}.bak") is None
    disk.replace(f"{path}.bak", saved)
    disk.replace(path, text.encode(), backup=False)
    with pytest.raises(StoreError, match=r"accounts\.json"):
        start(disk, **CLOSED)
