"""A changed file of accounts says what the request asked for, and all else as before."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.auth.plain_changes import AccountChange, with_account, with_white, without_account
from sprocket.auth.plain_files import PlainFile, PlainVersion, read_plain_file
from sprocket.base.errors import UsageError
from tests.compat.plain_acl_cases import FILES

pytest.importorskip("yaml", reason="plain_acl.yml is read with PyYAML")


def read(data: bytes | str) -> PlainFile:
    return read_plain_file("a.yml", data.encode() if isinstance(data, str) else data)


def meaning(file: PlainFile) -> list[tuple[object, ...]]:
    """What a file says, without its lines."""
    return [
        (
            each.name.text,
            each.secret_key,
            each.is_admin,
            each.white and each.white[1],
            each.default_topic and each.default_topic.rights,
            each.default_group and each.default_group.rights,
            [(one.name, one.rights) for one in each.topics],
            [(one.name, one.rights) for one in each.groups],
        )
        for each in file.accounts
    ]


@pytest.mark.parametrize("name", FILES)
def test_what_is_not_named_stays(name: str) -> None:
    file = read(FILES[name] + "\nglobalWhiteRemoteAddresses: [10.10.1.*]\n")
    made = read(with_account(file, AccountChange("another-one", "its-secret"), 5))
    assert meaning(made)[:-1] == meaning(file)
    assert made.white[0][1] == ("10.10.1.0/24",)
    assert made.version == PlainVersion(1, 5)
    back = read(without_account(made, "another-one", 6))
    assert meaning(back) == meaning(file)
    assert back.version == PlainVersion(2, 6)


def test_a_change_replaces_what_it_names() -> None:
    file = read(FILES["manual"])
    change = AccountChange("RocketMQ", "87654321", True, topics=["b=SUB"], default_topic="PUB")
    account = read(with_account(file, change, 1)).accounts[0]
    assert (account.secret_key, account.is_admin) == ("87654321", True)
    assert [each.at.text for each in account.topics] == ["b=SUB"]
    assert [each.name for each in account.groups] == ["groupA", "groupB", "groupC"]
    assert account.default_topic is not None
    assert account.default_topic.rights == {"Pub"}
    assert account.default_group is not None
    assert account.default_group.rights == {"Sub"}


def test_white_addresses_are_replaced() -> None:
    file = read("globalWhiteRemoteAddresses: [10.0.0.1]\n")
    assert [at.text for at, _ in read(with_white(file, ["10.2.*.*"], 1)).white] == ["10.2.*.*"]
    assert read(with_white(file, [], 1)).white == ()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (AccountChange("short", "long-enough"), "accessKey has more than 6"),
        (AccountChange("long-enough"), "secretKey has more than 6"),
        (AccountChange("long-enough", "short"), "secretKey has more than 6"),
        (AccountChange("long-enough", "long-enough", white="10.0.0"), "four numbers|no address"),
        (AccountChange("long-enough", "long-enough", topics=["a=pub"]), "'a=pub' is not NAME"),
        (AccountChange("long-enough", "long-enough", groups=["a=SUB=b"]), "is not NAME|items as"),
        (AccountChange("long-enough", "long-enough", topics=["=SUB"]), "items as NAME"),
        (AccountChange("long-enough", "long-enough", default_group="all"), "'all' is not PUB"),
    ],
)
def test_what_could_not_be_read_again_is_refused(change: AccountChange, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        with_account(read("accounts: []"), change, 1)
    with pytest.raises(UsageError, match="no address"):
        with_white(read(""), ["nowhere"], 1)


PRINTABLE = st.sampled_from("aZ0_ é漢'\"#:{}[],&*!|>%@-?=\\/~.")


@settings(max_examples=40)
@given(
    st.text(PRINTABLE, min_size=7, max_size=20),
    st.text(PRINTABLE, min_size=7, max_size=20),
    st.lists(st.sampled_from(["a=SUB", "b: c=PUB", "#d=DENY", "%RETRY%g=SUB"]), max_size=3),
)
def test_any_text_is_the_same_when_it_is_read_again(
    name: str, secret: str, topics: list[str]
) -> None:
    made = read(with_account(read(""), AccountChange(name, secret, topics=topics), 1))
    (account,) = made.accounts
    assert (account.name.text, account.secret_key) == (name, secret)
    assert [each.at.text for each in account.topics] == topics


def test_a_version_that_is_none_counts_as_the_first() -> None:
    for text in ("7", "[7]", "[{counter: [1]}]", "[{counter: -1, timestamp: x}]", "[]"):
        assert read(f"dataVersion: {text}\n").version == PlainVersion()
    assert read("dataVersion: [{counter: 7, timestamp: 8}]\n").version == PlainVersion(7, 8)
