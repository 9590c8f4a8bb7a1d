"""Key-value settings of a name server."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sprocket.base.errors import CorruptRecord, InvalidParameter, SystemFailure
from sprocket.nameserver.settings import KeyValueSettings


def test_a_value_is_kept_under_namespace_and_key() -> None:
    settings = KeyValueSettings()
    settings.put("n", "k", "v")
    assert settings.get("n", "k") == "v"
    assert settings.get("n", "other") is None
    assert settings.get("other", "k") is None
    assert settings.of("n") == {"k": "v"}


def test_a_namespace_goes_with_its_last_value() -> None:
    settings = KeyValueSettings()
    settings.put("n", "k", "v")
    settings.delete("n", "k")
    settings.delete("n", "k")
    assert settings.of("n") is None
    settings.validate()


@pytest.mark.parametrize(
    ("namespace", "key", "value"),
    [("", "k", "v"), ("n", "", "v"), ("n" * 1025, "k", "v"), ("n", "k", "v" * 65537)],
)
def test_odd_names_and_values_are_refused(namespace: str, key: str, value: str) -> None:
    with pytest.raises(InvalidParameter):
        KeyValueSettings().put(namespace, key, value)


def test_the_table_is_bounded_and_known_values_still_change() -> None:
    settings = KeyValueSettings(entries_max=1)
    settings.put("n", "k", "1")
    with pytest.raises(SystemFailure):
        settings.put("n", "l", "1")
    settings.put("n", "k", "2")
    assert settings.get("n", "k") == "2"


def test_a_file_of_rocketmq_is_read() -> None:
    settings = KeyValueSettings()
    settings.decode(b'{\n\t"configTable":{\n\t\t"ORDER_TOPIC_CONFIG":{"t":"a:4"}\n\t}\n}')
    assert settings.of("ORDER_TOPIC_CONFIG") == {"t": "a:4"}


names = some.text(min_size=1, max_size=5)


@given(some.dictionaries(names, some.dictionaries(names, some.text(max_size=9), min_size=1)))
def test_what_is_written_is_read_back(table: dict[str, dict[str, str]]) -> None:
    settings, again = KeyValueSettings(), KeyValueSettings()
    for namespace, keys in table.items():
        for key, value in keys.items():
            settings.put(namespace, key, value)
    again.decode(settings.encode())
    assert {n: again.of(n) for n in table} == table
    assert again.encode() == settings.encode()


@given(some.binary(max_size=50))
def test_any_bytes_are_a_table_or_refused(content: bytes) -> None:
    with contextlib.suppress(CorruptRecord):
        KeyValueSettings().decode(content)
