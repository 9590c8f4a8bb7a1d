"""No secret is in a log, a listing, an error or the `repr` of anything.

Secrets here bear a mark, which is searched for in all that the programs write, at the level DEBUG,
while things go well and while they fail.
"""

from __future__ import annotations

import ast
import asyncio
import gc
import io
import logging
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sprocket import Message, Producer, PullConsumer, Standalone
from sprocket.auth.accounts import User
from sprocket.auth.first_users import FirstUser
from sprocket.base.config import SECRET_MASK, Declared, settings_of
from sprocket.base.config_files import ConfigFile, load
from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConfigError, SprocketError
from sprocket.broker.config import BrokerConfig
from sprocket.cli.loading import kinds
from sprocket.cli.settings import in_programs
from sprocket.client.config import ProducerConfig, PullConfig
from sprocket.election.etcd import EtcdSecurity
from sprocket.filter.python import PythonFilter
from sprocket.protocol.bodies import UserBody
from sprocket.protocol.requests.admin import BrokerConfigOf, UpdateBrokerConfig
from sprocket.protocol.requests.filter import UploadFilter
from sprocket.protocol.signing import Signer
from sprocket.remoting.pool import Pool
from sprocket.remoting.tls.certificates import KeyPair
from sprocket.remoting.tls.settings import ClientTls, TlsConfig
from tests.certificates import Authority
from tests.cli.parts import sprocket
from tests.support import run
from tests.test_tidy import SOURCE

MARK = "Hunter2"
SECRETS: list[Declared] = [
    declared
    for kind in kinds()
    for declared in settings_of(kind).values()
    if declared.about.is_secret
]
#: Names of what is secret, in any class.
_SECRET_NAME = re.compile(r"(.*_)?(password|secret|secret_key|security_token)")


def marked(declared: Declared) -> str:
    """A value that the setting may have, with the mark."""
    value = {
        "first_user": f'{{"username":"a","password":"{MARK}"}}',
        "inner_keys": f'{{"accessKey":"a","secretKey":"{MARK}"}}',
    }.get(declared.name, f"s-{MARK}")
    assert declared.complaint(value) is None
    return value


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All that is logged."""
    written = io.StringIO()
    catching = logging.StreamHandler(written)
    root, before = logging.getLogger(), logging.getLogger().level
    root.addHandler(catching)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(catching)
    root.setLevel(before)


def _classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                yield path, node


def _is_hidden(value: ast.expr | None) -> bool:
    """Whether a field's declaration leaves it out of the `repr`."""
    said = {
        each.arg: each.value.value
        for each in getattr(value, "keywords", ())
        if isinstance(each.value, ast.Constant)
    }
    return said.get("repr") is False or said.get("is_secret") is True


def test_no_class_shows_a_secret_in_its_repr() -> None:
    """By name; a class with its own `__repr__` is judged by the other tests."""
    shown = [
        f"{path.relative_to(SOURCE)}: {node.name}.{field.target.id}"
        for path, node in _classes()
        if not any(getattr(each, "name", "") == "__repr__" for each in node.body)
        for field in node.body
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and _SECRET_NAME.fullmatch(field.target.id)
        and ast.unparse(field.annotation) != "bool"
        and not _is_hidden(field.value)
    ]
    assert shown == []


@pytest.mark.parametrize(
    "thing",
    [
        EtcdSecurity(password=MARK),
        KeyPair("a.pem", "a.key", MARK),
        Signer("me", MARK, MARK),
        FirstUser("me", MARK),
        User("me", MARK),
        UserBody(username="me", password=MARK),
        ClientTls(key_password=MARK),
        PythonFilter("def f(message):\n    return True\n", "f", secret=MARK),
        *(
            kind(**{name: MARK for name, each in settings_of(kind).items() if each.about.is_secret})
            for kind in (*kinds(), *in_programs())
        ),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_what_has_a_secret_does_not_show_it(thing: object) -> None:
    assert MARK not in repr(thing)
    assert MARK not in str(thing)


def _said(**source: Any) -> str:
    """What loading these settings has to say."""
    try:
        return "\n".join(load(kinds(), **source).notes)
    except ConfigError as error:
        return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("declared", SECRETS, ids=lambda each: each.key)
def test_no_error_about_a_secret_setting_shows_it(declared: Declared) -> None:
    names = [*declared.rocketmq_names, declared.key]
    files = [
        ConfigFile("b.toml", f"[{declared.part}]\n{declared.name} = {value}\n")
        for value in (f'["{MARK}"]', f'{{a = "{MARK}"}}', f'"{MARK}', f'"{MARK}\udc80"')
    ]
    for name in names:
        for value in (f"'{MARK}'", f"{MARK} # {MARK}", f"\\u{MARK}", f"\udc80{MARK}", f"{{{MARK}"):
            files.append(ConfigFile("b.conf", f"{name}={value}\n{name}={value}\n"))
    sources: list[dict[str, Any]] = [{"file": file} for file in files]
    sources.append({"environment": {declared.environment: f"tcp://{MARK}"}})
    sources.append({"overrides": {declared.key: (MARK,)}})
    for source in sources:
        assert MARK not in _said(**source), source


@pytest.mark.parametrize("declared", SECRETS, ids=lambda each: each.key)
def test_the_mask_of_a_listing_is_no_secret(declared: Declared) -> None:
    with pytest.raises(ConfigError, match="write the secret"):
        load(kinds(), overrides={declared.key: SECRET_MASK})


@pytest.mark.parametrize(
    "place", [f"u:{MARK}@h:1", f"etc://u:{MARK}@h:1", f"etcd://u:{MARK}@h:1", f"u:{MARK}@"]
)
def test_a_password_in_the_place_of_an_elector_is_not_repeated(place: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(kinds(), overrides={"broker.elector": place})
    assert MARK not in str(raised.value)


def test_the_command_line_shows_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "all.conf"
    file.write_text("".join(f"{each.key}={marked(each)}\n" for each in SECRETS))
    toml = tmp_path / "bad.toml"
    toml.write_text(f'[broker]\nfilter_secret = ["{MARK}"]\n[client]\nsecret_key = "{MARK}"\n')
    variables = {each.environment: marked(each) for each in SECRETS}
    for words in (
        ["config", "show", "--config", str(file)],
        ["config", "show", "--config", str(file), "--json"],
        ["config", "check", str(file)],
        ["config", "check", str(toml)],
        ["config", "show", *(f"--set={each.key}={marked(each)}" for each in SECRETS)],
        ["config", "set", f"broker.filter_secret={MARK}", "-n", "127.0.0.1:1", "--timeout", "1"],
        ["topic", "list", "-n", "127.0.0.1:1", "--timeout", "1"],
        ["broker", "--config", str(toml)],
        ["pipeline", "run", "volume", "t", "-n", "127.0.0.1:1"],
    ):
        done = sprocket(*words)
        assert MARK not in done.out + done.err, words
        with_variables = sprocket(*words, **variables)
        assert MARK not in with_variables.out + with_variables.err, words


class _Node:
    """A broker, a name server and a proxy with marked secrets, and who asks them."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        server = authority.issue("marked", password=f"p-{MARK}")
        self.tls = TlsConfig(
            mode="permissive",
            certificate=server.certificate,
            key=server.key,
            key_password=f"p-{MARK}",
            outgoing=True,
            outgoing_authorities=authority.path,
            outgoing_certificate=server.certificate,
            outgoing_key=server.key,
            outgoing_key_password=f"p-{MARK}",
        )
        secrets = {
            each.name: marked(each)
            for each in settings_of(BrokerConfig).values()
            if each.about.is_secret
        }
        self.config = BrokerConfig(port=0, filter_workers=1, **secrets)
        self.node = Standalone(store=folder, configs=[self.config, self.tls], grpc_port=0)
        self.keys = {
            "access_key": "me",
            "secret_key": f"k-{MARK}",
            "security_token": f"t-{MARK}",
            "tls": True,
            "tls_authorities": authority.path,
            "tls_certificate": server.certificate,
            "tls_key": server.key,
            "tls_key_password": f"p-{MARK}",
        }

    async def drive(self) -> None:
        """Messages, errors and listings; what is answered is in `seen`."""
        self.seen: list[str] = []
        names = self.node.nameserver_address
        async with Producer("p", nameservers=names, config=ProducerConfig(**self.keys)) as producer:
            await producer.send(Message("orders", b"x"))
        async with PullConsumer("g", nameservers=names, config=PullConfig(**self.keys)) as consumer:
            for queue in await consumer.queues("orders"):
                await consumer.pull(queue, 0)
        signer = Signer("me", f"k-{MARK}", f"t-{MARK}")
        async with Pool(signer=signer) as pool:
            await self._ask(pool, BrokerConfigOf())
            for line in (
                f"broker.filter_secret=s-{MARK}\nautoCreateTopicEnable=true",
                f"broker.filter_secret={SECRET_MASK}\nautoCreateTopicEnable=false",
                f"broker.filter_secret=x-{MARK}",
                f"password={MARK}",
                f"broker.filter_secret=\\u{MARK}",
            ):
                await self._ask(pool, UpdateBrokerConfig(), line.encode())
            await self._ask(pool, BrokerConfigOf())
            upload = UploadFilter(
                consumer_group="g", topic="orders", class_name="f", class_crc=0,
                signed_ms=1, signature=f"bad-{signer.access_key}",
            )  # fmt: skip
            await self._ask(pool, upload, b"def f(message):\n    return True\n")
        refused = {**self.keys, "tls_key_password": f"wrong-{MARK}"}
        with pytest.raises(SprocketError) as raised:
            async with Producer("p", nameservers=names, config=ProducerConfig(**refused)) as other:
                await other.send(Message("orders", b"x"))
        self.seen.append("".join(traceback.format_exception(raised.value)))
        self.seen += _reprs()

    async def _ask(self, pool: Pool, header: Any, body: bytes = b"") -> None:
        reply = await pool.call(
            self.node.broker_address, header, body=body, deadline=Deadline.after(60)
        )
        self.seen.append(f"{reply.code} {reply.remark} {reply.fields}")
        self.seen.append(bytes(reply.body).decode())


def _reprs() -> list[str]:
    """The `repr` of every object of ours that is alive."""
    found = []
    for each in gc.get_objects():
        if str(type(each).__module__).startswith("sprocket"):
            try:
                found.append(repr(each))
            except (AttributeError, RuntimeError):  # half made, or changing under the repr
                continue
    return found


def test_no_secret_is_in_a_log_an_answer_or_a_repr_of_running_servers(
    tmp_path: Path, authority: Authority, log: io.StringIO
) -> None:
    world = _Node(tmp_path / "store", authority)

    async def story() -> None:
        asyncio.get_running_loop().set_debug(True)
        async with world.node:
            await world.drive()

    run(story())
    assert "broker.filter_secret=(secret)" in "".join(world.seen)
    assert "changes settings" in log.getvalue()
    for text in (log.getvalue(), *world.seen):
        at = text.find(MARK)
        assert at < 0, text[max(0, at - 300) : at + 100]
