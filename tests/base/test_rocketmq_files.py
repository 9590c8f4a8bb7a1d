"""RocketMQ's own configuration files."""

from __future__ import annotations

import pytest

from sprocket.base.config_files import ConfigFile, load
from sprocket.base.decoding import decode
from sprocket.base.errors import ConfigError
from sprocket.cli.loading import kinds
from tests.base.rocketmq_examples import EXAMPLES, Example


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=list(EXAMPLES))
def test_a_file_in_the_style_of_published_ones_is_taken_or_refused(example: Example) -> None:
    file = ConfigFile("broker.conf", decode(example.content))
    if example.faults:
        with pytest.raises(ConfigError) as raised:
            load(kinds()[:2], file=file)
        lines = str(raised.value).split("\n")
        assert len(lines) == len(example.faults), lines
        for line, fault in zip(lines, example.faults, strict=True):
            assert fault in line
        return
    loaded = load(kinds()[:2], file=file)
    for key, value in example.given.items():
        part, _, name = key.partition(".")
        assert getattr(loaded.of_part(part), name) == value
    for part in example.notes:
        assert any(part in note for note in loaded.notes), loaded.notes


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("storePathRootDir=D:\\users", r"'\\users' is no escape"),
        (
            "br\u043ekerName=b",
            "'br\u043ekerName'; did you mean 'brokerName'? character 3 is U+043E",
        ),
        (
            "listen\u00a0Port=1",
            r"'listen\xa0Port'; did you mean 'listenPort'? character 7 is U+00A0",
        ),
        ("BrokerName=b", "did you mean 'brokerName'? Letter case counts, see character 1"),
        ("broker\udce9=b", r"the name 'broker\udce9' is not UTF-8 (byte 0xE9)"),
        ("brokerName=a // the first", "a comment stands on a line of its own"),
        ("aclEnable=true # really", "a comment stands on a line of its own"),
        ("brokerName='b'", "brokerName is written without quotes"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused(line: str, fault: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(kinds()[:2], file=ConfigFile("broker.conf", line))
    assert fault in str(raised.value)


def test_a_file_of_another_kind_has_all_its_faults_and_some_suggestions() -> None:
    text = "\n".join(f"brokerNane{number}=b" for number in range(500))
    with pytest.raises(ConfigError) as raised:
        load(kinds()[:2], file=ConfigFile("broker.conf", text))
    lines = str(raised.value).split("\n")
    assert len(lines) == 500
    assert [number for number, line in enumerate(lines) if "did you mean" in line] == [*range(100)]
