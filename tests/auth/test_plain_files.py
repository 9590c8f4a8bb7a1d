"""A file of accounts is read whole, or refused with the lines of its faults."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.auth.plain_files import FILE_BYTES_MAX, PlainFile, read_plain_file
from sprocket.base.errors import ConfigError

yaml = pytest.importorskip("yaml", reason="plain_acl.yml is read with PyYAML")

ACCOUNT = "accounts:\n- accessKey: somebody\n  secretKey: '12345678'\n"


def read(text: str) -> PlainFile:
    return read_plain_file("plain_acl.yml", text.encode())


def fault(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return str(caught.value)


def test_an_empty_file_has_no_accounts() -> None:
    assert read("") == read("# nothing\n") == PlainFile("plain_acl.yml", (), ())
    assert read("accounts:\nglobalWhiteRemoteAddresses:\n").accounts == ()


def test_a_byte_order_mark_is_no_part_of_the_file() -> None:
    found = read_plain_file("plain_acl.yml", b"\xef\xbb\xbf" + ACCOUNT.encode())
    assert [each.name.text for each in found.accounts] == ["somebody"]


def test_a_number_is_a_key_if_it_has_one_form_only() -> None:
    found = read("accounts: [{accessKey: 7654321, secretKey: 12345678, admin: false}]")
    assert found.accounts[0].name.text == "7654321"
    assert found.accounts[0].secret_key == "12345678"
    for text in ("01234567", "1_234_567", "0x1234567", "2001-12-14", "1234567.5", "12:30:45"):
        told = fault(f"accounts:\n- accessKey: somebody\n  secretKey: {text}\n")
        assert "line 3" in told
        assert "in quotes" in told
        assert text not in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- a\n", "line 1: the file is a list of NAME: VALUE"),
        ("accounts: {a: b}\n", "line 1: accounts is a list"),
        (ACCOUNT + "  adnim: true\n", "line 4: there is no 'adnim'; did you mean 'admin'?"),
        (ACCOUNT + "  accessKey: another\n", "line 4: accessKey stands there twice"),
        (ACCOUNT + "  admin: maybe\n", "line 4: admin is true or false"),
        (ACCOUNT + "  topicPerms: a=PUB\n", "line 4: topicPerms is a list"),
        (ACCOUNT + "  topicPerms:\n  - a=PUB\n  - b\n", "line 6: topicPerms has items as NAME"),
        (ACCOUNT + "  topicPerms: [{a: PUB}]\n", "line 4: a text is wanted"),
        (ACCOUNT + "  whiteRemoteAddress: 10.0.0.0/8\n", "line 4: '10.0.0.0/8' is no address"),
        ("accounts:\n- accessKey: short\n  secretKey: abcdefgh\n", "line 2: accessKey has more"),
        ("accounts:\n- accessKey: somebody\n", "line 2: secretKey has more than 6"),
        ("accounts:\n- just a text\n", "line 2: an account is a list"),
        ("accounts: [\n", "line 2: expected the node content"),
        ("accounts: !!python/name:os.system ''\n", "line 1: accounts is a list"),
        ("a: &a [1]\naccounts: [*b]\n", "line 2: found undefined alias"),
        ("\x00", "no YAML"),
    ],
)
def test_a_fault_names_its_line(text: str, told: str) -> None:
    assert told in fault(text)


def test_all_faults_are_told_at_once() -> None:
    told = fault(ACCOUNT + "  admin: maybe\n  topicPerms: [b]\n").split("\n")
    assert [each.split(":")[0] for each in told] == [
        "plain_acl.yml, line 4",
        "plain_acl.yml, line 5",
    ]
    many = ACCOUNT + "  topicPerms: [" + "a," * 500 + "]\n"
    assert len(fault(many).split("\n")) == 20


def test_what_would_grow_or_be_deep_is_refused() -> None:
    bomb = "a: &a [x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(9))
    assert "there is no 'a'" in fault(bomb)
    alias = "accounts:\n- &x {accessKey: somebody, secretKey: abcdefgh}\n- *x\n"
    assert "alias" in fault(alias)
    assert "nested" in fault("[" * 5_000)
    assert "nested" in fault("accounts: " + "[" * 900 + "]" * 900)
    assert "at most" in fault(" " * (FILE_BYTES_MAX + 1))


def test_an_account_without_a_permission_has_none() -> None:
    account = read(ACCOUNT).accounts[0]
    assert (account.default_topic, account.topics, account.white) == (None, (), None)
    account = read(ACCOUNT + "  defaultTopicPerm:\n  whiteRemoteAddress:\n").accounts[0]
    assert (account.default_topic, account.white) == (None, None)


def test_a_tag_makes_nothing() -> None:
    assert read("accounts: !!python/object/apply:os.system []\n").accounts == ()


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_a_file_or_a_fault(data: bytes) -> None:
    with contextlib.suppress(ConfigError):
        read_plain_file("plain_acl.yml", data)
