"""What holds for every setting: its unit, its bounds, its names, and all ways to set it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sprocket.base.config import Declared, check, settings_of
from sprocket.base.config_files import ConfigFile, load
from sprocket.base.errors import ConfigError
from sprocket.cli import settings
from sprocket.cli.loading import kinds

LOADED = [(kind, each) for kind in kinds() for each in settings_of(kind).values()]
IN_PROGRAMS = [(kind, each) for kind in settings.in_programs() for each in settings._own(kind)]
EVERY = LOADED + IN_PROGRAMS
#: What a number counts, where its name says it without a unit.
COUNTED = re.compile(
    r"_(ms|bytes|hours|seconds|percent|max|port|level|batch|workers|slots|entries|queues|pages)$"
    r"|^(ms|port|id|permission|election_priority|retries|concurrency|processes|copies|copies_min|producer_pause_factor)$"
    r"|_bytes_|_ms_min|_count_|_seconds_|_checks_|_hours_"
)


def ids(cases: list[tuple[type, Declared]]) -> list[str]:
    return [each.key for _, each in cases]


def another(each: Declared) -> Any:
    """An allowed value that is not the default."""
    about = each.about
    candidates: tuple[Any, ...] = {
        bool: (not each.default,),
        int: (about.minimum, about.maximum, 7, 2020, 60_000, 1 << 20),
        float: (0.5,),
        str: (
            "a",
            "10.0.0.7",
            "/tmp/a",
            "05",
            "1s 2s",
            "10.0.0.7:10912",
            "etcd://10.0.0.7:2379",
            '{"username":"a","password":"b"}',
            '{"accessKey":"a","secretKey":"b"}',
        ),
        tuple: (
            ("10.0.0.7",),
            ("a:1",),
            ("/tmp/a",),
            ("topic a requests=1", "ip * held=2"),
            ("310", "11"),
        ),
    }[each.type]
    return next(
        value
        for value in (*(about.choices or ()), *candidates)
        if value is not None and value != each.default and each.complaint(value) is None
    )


@pytest.mark.parametrize(("kind", "each"), EVERY, ids=ids(EVERY))
def test_a_number_has_a_unit_and_bounds_and_each_setting_a_sentence(
    kind: type, each: Declared
) -> None:
    assert each.about.doc.endswith("."), each.about.doc
    if each.type is int:
        assert COUNTED.search(each.name), "no unit in the name"
        assert each.about.minimum is not None
    if each.type in (str, tuple) and each.about.choices is None and not each.optional:
        assert each.about.form is not None or each.part in ("client", "consumer")
    assert each.complaint(each.default) is None


@pytest.mark.parametrize(("kind", "each"), EVERY, ids=ids(EVERY))
def test_a_value_out_of_bounds_is_refused_by_name(kind: type, each: Declared) -> None:
    wrong: list[Any] = [object()]
    if each.type is int:
        assert each.about.minimum is not None
        wrong += [int(each.about.minimum) - 1, 2**63, True, "7"]
        if each.about.maximum is not None:
            wrong.append(int(each.about.maximum) + 1)
    if each.about.choices is not None:
        wrong.append("neither")
    for value in wrong:
        with pytest.raises(ConfigError, match=rf"\b{each.part}\.{each.name} "):
            check(kind(**{each.name: value}))


#: Settings that no other value than the default may have, or not by themselves.
BOUND = {
    "broker.authorization",
    "broker.id",
    "broker.plain_acl",
    "broker.controller_mode",
    "broker.elector_cert",
    "broker.elector_key",
    "client.access_key",
    "nameserver.authorization",
    "client.secret_key",
    "client.security_token",
    "proxy.authorization",
    "tls.key",
    "tls.client_certificates",
    "tls.outgoing_key",
}
FREE = [(kind, each) for kind, each in LOADED if each.key not in BOUND]


@pytest.mark.parametrize(("kind", "each"), FREE, ids=ids(FREE))
def test_a_value_is_the_same_in_toml_environment_command_line_and_a_rocketmq_file(
    kind: type, each: Declared
) -> None:
    value = another(each)
    plain = settings.plain(value)
    quoted = plain if each.type in (int, float, bool) else f"'{plain}'"
    toml = load([kind], file=ConfigFile("a.toml", f"[{each.part}]\n{each.name} = {quoted}\n"))
    others = [
        load([kind], environment={each.environment: plain}),
        load([kind], overrides={each.key: plain}),
        *(
            load([kind], file=ConfigFile("a.conf", f"{name}={plain}\n"))
            for name in (each.key, *each.rocketmq_names)
        ),
    ]
    for loaded in (toml, *others):
        assert getattr(loaded.of(kind), each.name) == value


def test_every_setting_is_in_the_reference() -> None:
    text = "\n".join(settings.markdown())
    for _, each in EVERY:
        assert f"| `{each.name}` |" in text
        for name in each.rocketmq_names:
            assert f"`{name}`" in text
