"""Files of RocketMQ 4.x's access control, requests, and what its module acl 4.9.8 says to them.

What it says is in `tests/golden/plain_acl`; `python -m tests.compat.plain_acl_cases` asks it and
writes that down. It takes Java 11+ and Maven.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sprocket.auth.needs import RULES
from sprocket.protocol.codes import OwnRequestCode
from sprocket.protocol.codes import RequestCode as R
from tests.broker.test_closed import BODIES, FIELDS

GOLDEN = Path(__file__).parents[1] / "golden" / "plain_acl"
_FOLDER = Path(__file__).parent / "acl4"

#: Files by name. The first is the one of RocketMQ's manual.
FILES = {
    "manual": """
accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - topicA=DENY
      - topicB=PUB|SUB
      - topicC=SUB
    groupPerms:
      # the group should convert to retry topic
      - groupA=DENY
      - groupB=PUB|SUB
      - groupC=SUB

  - accessKey: rocketmq2
    secretKey: 12345678
    whiteRemoteAddress: 192.168.1.*
    # if it is admin, it could access all resources
    admin: true
""",
    "open": """
accounts:
- accessKey: openuser
  secretKey: "secret-1"
  whiteRemoteAddress: 10.0.0.1-9
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: SUB|PUB
  topicPerms: [topicA=DENY, topicB=PUB, topicC=sub, topicD = SUB , "topic*=DENY", topicE==PUB]
  groupPerms: [groupA=PUB, groupB=SUB, groupC=DENY]
""",
    "silent": """
accounts:
- {accessKey: nothing-said, secretKey: 'true-secret', topicPerms: [topicB=SUB]}
- {accessKey: lowercase, secretKey: "12345678", defaultTopicPerm: pub, defaultGroupPerm: Sub}
- {accessKey: padded-words, secretKey: "12345678", defaultTopicPerm: ' PUB ',
   defaultGroupPerm: SUB }
""",
    "admins": """
accounts:
- {accessKey: admin-bound, secretKey: "12345678", admin: true,
   topicPerms: [topicA=PUB, topicB=DENY]}
- accessKey: admin-groups
  secretKey: "12345678"
  admin: true
  defaultTopicPerm: SUB
  defaultGroupPerm: SUB
  groupPerms: [groupA=DENY]
- {accessKey: admin-quoted, secretKey: "12345678", admin: "true"}
- {accessKey: admin-yes, secretKey: "12345678", admin: yes}
""",
    "trace": """
accounts:
- {accessKey: trace-denied, secretKey: "12345678", topicPerms: [RMQ_SYS_TRACE_TOPIC=DENY]}
- {accessKey: trace-sub, secretKey: "12345678", topicPerms: [RMQ_SYS_TRACE_TOPIC=SUB]}
- {accessKey: trace-open, secretKey: "12345678", defaultTopicPerm: PUB|SUB, defaultGroupPerm: SUB,
   topicPerms: [RMQ_SYS_TRACE_TOPIC=DENY]}
""",
    "retries": """
accounts:
- {accessKey: by-topic, secretKey: "12345678", topicPerms: ["%RETRY%groupA=SUB"]}
- {accessKey: topic-wins, secretKey: "12345678", groupPerms: [groupA=SUB, groupB=DENY],
   topicPerms: ["%RETRY%groupA=DENY", "%RETRY%groupB=SUB", topicA=SUB, topicA=PUB]}
""",
    "white": """
accounts:
- accessKey: white-list
  secretKey: "12345678"
  whiteRemoteAddress: "10.0.0.7,10.0.0.9"
- accessKey: white-some
  secretKey: "12345678"
  whiteRemoteAddress: "10.0.0.{1,7}"
  topicPerms: [topicA=DENY, topicB=PUB]
  defaultTopicPerm: PUB|SUB
- {accessKey: white-all, secretKey: "12345678", whiteRemoteAddress: "*"}
- {accessKey: white-six, secretKey: "12345678", whiteRemoteAddress: "fe80::1:*"}
""",
    "twice": """
accounts:
- {accessKey: same-name, secretKey: "12345678", defaultTopicPerm: PUB}
- {accessKey: same-name, secretKey: "87654321", defaultTopicPerm: SUB}
""",
}
#: One whose account has no permission at all.
CLOSED_FILE = "accounts: [{accessKey: nothing-said, secretKey: true-secret}]"
_SECRETS = {"openuser": "secret-1", "nothing-said": "true-secret"}
_TOPICS = ("topicA", "topicB", "topicC", "topicD", "topicE", "topicX", "RMQ_SYS_TRACE_TOPIC")
_GROUPS = ("groupA", "groupB", "groupC", "groupX")
_PLACES = ("10.0.0.7", "192.168.1.5", "172.16.0.1", "fe80:0:0:0:0:0:1:ab")

#: White addresses, and addresses that they may be about.
ADDRESSES = (
    "127.0.0.1", "10.0.0.1,10.0.0.3", "10.0.0.{1,3}", "10.0.0.1-3", "10.0.0.*", "10.0.*.*",
    "10.0.*.7", "10.1-3.*.*", "10.1-3.2.1", "10.*.*.*", "*.*.*.*", "*", "*:*:*:*:*:*:*:*", "",
    "0.0.0.0", "10.0.0.0-1", "::1", "5::7:6:1-200:*", "5::7:6:1-200", "1050::0005:0600:300c:3-100",
    "1050:*", "1050::*", "fe80::1:*", "fe80::{1,2,abc}", "FE80::A", "fe80::a,10.0.0.1",
    "2001:db8:0:0:0:0:0:*", "fe80::1-5", "10.0.0.255-255", "fe80::1:1-FFFF",
)  # fmt: skip
#: White addresses that one of the two refuses, or with which it fails at each request.
REFUSED = (
    "10.0.0", "10.0.0.256", "10.0.0.01", "10.0.0.1/8", "a.b.c.d", "10.0.0.3-1", "10.0.0.-3",
    "10.0.0.1-", "10.0.0.1-300", "*.0.0.1", "10.0.0.0-0", "10.0.{1,2}.3", "10.{1,2}", "{1,2}",
    "10.0.0.1, 10.0.0.2", "fe80:*:1", "1-5:2", "::1-5", "::*", "fe80::{1,2}:3", "localhost",
    "300.1.1.*", "fe80::zz:*", "10.0.0.{1-3}",
)  # fmt: skip
FROM = (
    "127.0.0.1", "10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.7", "10.0.0.255",
    "10.0.5.7", "10.2.2.1", "10.2.9.9", "10.4.2.1", "11.0.0.1", "0.0.0.0", "0:0:0:0:0:0:0:1",
    "5:0:0:0:7:6:1:9", "5:0:0:0:0:7:6:ab", "5:0:0:0:0:7:6:201", "5:0:0:0:7:6:201:9",
    "1050:0:0:0:5:600:300c:3", "1050:0:0:0:5:600:300c:ff", "1050:0:0:0:5:600:300c:101",
    "1050:1:2:3:4:5:6:7", "fe80:0:0:0:0:0:1:ab", "fe80:0:0:0:0:0:0:1", "fe80:0:0:0:0:0:0:a",
    "fe80:0:0:0:0:0:0:abc", "2001:db8:0:0:0:0:0:5", "2001:db8:0:0:0:0:1:5",
)  # fmt: skip


def requests() -> Iterator[dict[str, Any]]:
    """Requests of all kinds that 4.x checks, without who asks."""
    for topic in _TOPICS:
        yield _request(f"send {topic}", R.SEND_MESSAGE, topic=topic, producerGroup="p")
        yield _request(f"send2 {topic}", R.SEND_MESSAGE_V2, b=topic, a="p")
        yield _request(f"query {topic}", R.QUERY_MESSAGE, topic=topic, key="k")
        for group in _GROUPS[: 4 if topic in ("topicA", "topicX") else 2]:
            yield _request(
                f"pull {topic} {group}", R.PULL_MESSAGE, topic=topic, consumerGroup=group
            )
        yield _request(
            f"commit {topic}", R.UPDATE_CONSUMER_OFFSET, topic=topic, consumerGroup="groupB",
            queueId=0, commitOffset=1,
        )  # fmt: skip
        body = {
            "clientID": "c",
            "producerDataSet": [],
            "consumerDataSet": [{"groupName": "groupB", "subscriptionDataSet": [{"topic": topic}]}],
        }
        yield _request(f"heartbeat {topic}", R.HEART_BEAT, body=json.dumps(body))
        yield _request(f"create {topic}", R.UPDATE_AND_CREATE_TOPIC, topic=topic)
        yield _request(f"delete {topic}", R.DELETE_TOPIC_IN_BROKER, topic=topic)
    for group in _GROUPS:
        yield _request(f"back {group}", R.CONSUMER_SEND_MSG_BACK, group=group)
        yield _request(f"retry {group}", R.SEND_MESSAGE, topic=f"%RETRY%{group}", group=group)
        yield _request(f"members {group}", R.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=group)
        yield _request(f"leave {group}", R.UNREGISTER_CLIENT, clientID="c", consumerGroup=group)
        yield _request(f"delete {group}", R.DELETE_SUBSCRIPTIONGROUP, groupName=group)
    yield _request("settings", R.UPDATE_BROKER_CONFIG, body="a=1")
    yield _request("leave producer", R.UNREGISTER_CLIENT, clientID="c", producerGroup="p")


def _request(name: str, code: int, *, body: str | None = None, **fields: object) -> dict[str, Any]:
    texts = {each: str(value) for each, value in fields.items()}
    return {"name": name, "code": int(code), "fields": texts, "body": body}


def account_cases() -> Iterator[dict[str, Any]]:
    """Requests of all accounts from all places, and of nobody."""
    for file, text in FILES.items():
        names = dict.fromkeys(
            part.split("accessKey: ")[1].split(",")[0].strip()
            for part in text.splitlines()
            if "accessKey" in part
        )
        for key in names:
            for place in _PLACES if file in ("manual", "open", "white") else _PLACES[2:3]:
                for request in requests():
                    secret = _SECRETS.get(key, "12345678")
                    yield {"file": file, "key": key, "secret": secret, "from": place, **request}
        request = next(requests())
        first = next(iter(names))
        for key, secret in ((first, "wrong-secret"), ("stranger", "12345678"), (None, None)):
            yield {"file": file, "key": key, "secret": secret, "from": "172.16.0.1", **request}


def code_cases() -> Iterator[dict[str, Any]]:
    """Each request that our broker has, of an account without any permission."""
    for code in sorted(set(RULES) - set(OwnRequestCode)):
        body = BODIES.get(code)
        request = _request(str(code), code, body=body.decode() if body else None, **FIELDS)
        request["fields"] |= {"clientID": "c", "commitOffset": "0"}
        key, secret = "nothing-said", "true-secret"
        yield {"file": "closed", "key": key, "secret": secret, "from": "172.16.0.1", **request}


def who(case: dict[str, Any]) -> tuple[Any, ...]:
    """Who asks in a case, and from where."""
    return case["file"], case["key"], case["secret"], case["from"]


def address_file(white: str) -> str:
    """A file with one white address for all."""
    return f"globalWhiteRemoteAddresses:\n- {json.dumps(white)}\n"


def record() -> None:
    """Asks RocketMQ's module and writes down what it says."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        files = {**FILES, "closed": CLOSED_FILE}
        files |= {f"white-{at}": address_file(each) for at, each in enumerate(ADDRESSES + REFUSED)}
        for name, text in files.items():
            path = root / name / "conf" / "plain_acl.yml"
            path.parent.mkdir(parents=True)
            path.write_text(text)
        accounts = list(account_cases())
        unsigned = {"key": None, "secret": None, "code": 0, "fields": {}, "body": None}
        places = [
            {"file": f"white-{at}", "from": place, **unsigned}
            for at in range(len(ADDRESSES + REFUSED))
            for place in FROM
        ]
        codes = list(code_cases())
        asked = [{**each, "home": str(root / each["file"])} for each in accounts + places + codes]
        answers = _ask(asked, root)
    refused = {each["file"]: answer for each, answer in zip(accounts, answers, strict=False)}
    assert not any("broken" in each for each in refused.values()), refused
    GOLDEN.mkdir(exist_ok=True)
    allowed: dict[tuple[Any, ...], list[str]] = {}
    for each, answer in zip(accounts, answers, strict=False):
        names = allowed.setdefault(who(each), [])
        if answer["allowed"]:
            names.append(each["name"])
    _write("accounts.json", [[*key, names] for key, names in allowed.items()])
    of_codes = zip(codes, answers[-len(codes) :], strict=True)
    _write("codes.json", [[each["code"], answer["allowed"]] for each, answer in of_codes])
    answers = answers[: -len(codes)]
    table: dict[str, Any] = {}
    for each, answer in zip(places, answers[len(accounts) :], strict=True):
        white = (ADDRESSES + REFUSED)[int(each["file"].removeprefix("white-"))]
        broken = "broken" in answer or "No accessKey" not in answer.get("words", "No accessKey")
        table[white] = None if broken or table.get(white, []) is None else table.get(white, [])
        if table[white] is not None and answer["allowed"]:
            table[white].append(each["from"])
    _write("addresses.json", list(table.items()))


def _write(name: str, rows: list[Any]) -> None:
    text = ",\n".join(json.dumps(row) for row in rows)
    (GOLDEN / name).write_text(f"[\n{text}\n]\n")


def _ask(asked: list[dict[str, Any]], work: Path) -> list[dict[str, Any]]:
    jars = work / "jars"
    subprocess.run(
        ["mvn", "-q", "-B", "-f", str(_FOLDER / "pom.xml"), "dependency:copy-dependencies",
         f"-DoutputDirectory={jars}"],
        check=True,
    )  # fmt: skip
    done = subprocess.run(
        ["java", "-cp", f"{jars}/*", str(_FOLDER / "Judge.java")],
        input="".join(json.dumps(each) + "\n" for each in asked),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return [json.loads(line) for line in lines]


if __name__ == "__main__":
    record()
