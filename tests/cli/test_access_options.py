"""Commands that speak TLS, or ask as somebody: by options, environment, settings and profiles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sprocket.base.errors import UsageError
from sprocket.cli import loading
from sprocket.remoting.profiles import Profile
from sprocket.remoting.tls.settings import TlsConfig
from sprocket.spark.pipelines import Volume
from sprocket.spark.pipelines.parts.servers import AccessKeys
from tests.certificates import Authority
from tests.cli.closed import Command
from tests.cli.parts import running_node, sprocket


@pytest.fixture(scope="module")
def names(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node that takes TLS only, and only clients with a certificate."""
    issued = authority.issue("node")
    tls = TlsConfig(
        mode="enforcing",
        certificate=issued.certificate,
        key=issued.key,
        client_certificates="require",
        authorities=authority.path,
        outgoing_authorities=authority.path,
        outgoing_certificate=issued.certificate,
        outgoing_key=issued.key,
    )
    with running_node(str(tmp_path_factory.mktemp("node")), tls) as names:
        yield names


def options(authority: Authority) -> list[str]:
    mine = authority.issue("operator")
    return [
        "--tls-authorities", authority.path, "--tls-certificate", mine.certificate,
        "--tls-key", mine.key,
    ]  # fmt: skip


def test_options_turn_tls_on_for_every_kind_of_command(names: str, authority: Authority) -> None:
    with_tls = [*options(authority), "-n", names]
    assert sprocket("topic", "create", "orders", *with_tls).code == 0
    assert sprocket("send", "orders", "one coffee", *with_tls).code == 0
    assert "one coffee" in sprocket("consume", "orders", "--count", "1", *with_tls).out
    assert "orders" in sprocket("topic", "list", *with_tls).lines


def test_the_environment_and_the_file_of_settings_turn_it_on_too(
    names: str, authority: Authority, tmp_path: Path
) -> None:
    mine = authority.issue("operator")
    environment = {
        "SPROCKET_CLIENT_TLS": "true",
        "SPROCKET_CLIENT_TLS_AUTHORITIES": authority.path,
        "SPROCKET_CLIENT_TLS_CERTIFICATE": mine.certificate,
        "SPROCKET_CLIENT_TLS_KEY": mine.key,
    }
    outcome = sprocket("cluster", "status", "-n", names, **environment)
    assert (outcome.code, outcome.err) == (0, "")
    file = tmp_path / "sprocket.toml"
    file.write_text(
        f'[client]\ntls = true\ntls_authorities = "{authority.path}"\n'
        f'tls_certificate = "{mine.certificate}"\ntls_key = "{mine.key}"\n'
    )
    assert sprocket("cluster", "status", "-n", names, SPROCKET_CONFIG=str(file)).code == 0
    refused = sprocket("cluster", "status", "--no-tls", "-n", names, SPROCKET_CONFIG=str(file))
    assert refused.code == 1


def test_options_of_one_command_do_not_count_for_the_next(names: str, authority: Authority) -> None:
    assert sprocket("cluster", "status", *options(authority), "-n", names).code == 0
    assert loading.client().tls_of_client() is None
    assert sprocket("cluster", "status", "-n", names).code == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--tls"], "is of an unknown authority"),
        (["--tls", "--no-tls-check"], "demands a certificate, and none was shown"),
        (["--tls-authorities", "/nowhere.pem"], "cannot read /nowhere.pem: No such file"),
    ],
)
def test_what_is_wrong_is_one_line(names: str, given: list[str], said: str) -> None:
    outcome = sprocket("cluster", "status", *given, "-n", names)
    assert outcome.code in (1, 2)
    assert said in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_a_server_names_a_certificate_that_it_cannot_use(tmp_path: Path) -> None:
    for command in ("standalone", "broker", "nameserver"):
        outcome = sprocket(
            command, "--store", str(tmp_path / command), "--set", "tls.certificate=/nowhere.pem",
        )  # fmt: skip
        assert outcome.code == 2
        assert "cannot read /nowhere.pem: No such file or directory" in outcome.err
    outcome = sprocket("nameserver", "--set", "tls.mode=enforcing")
    assert "which needs tls.certificate" in outcome.err


def test_a_check_of_settings_names_files_that_cannot_be_used(
    authority: Authority, tmp_path: Path
) -> None:
    one, other = authority.issue("one"), authority.issue("other")
    file = tmp_path / "broker.conf"
    file.write_text(f"tls.server.certPath={one.certificate}\ntls.server.keyPath={one.key}\n")
    assert sprocket("config", "check", str(file)).code == 0
    file.write_text(f"tls.server.certPath={one.certificate}\ntls.server.keyPath={other.key}\n")
    outcome = sprocket("config", "check", str(file))
    assert outcome.code == 2
    assert "does not belong to the certificate" in outcome.err
    more = tmp_path / "tls.properties"
    more.write_text("tls.server.mode=enforcing\n")
    file.write_text(f"tls.config.file={more}\n")
    assert "needs tls.certificate" in sprocket("config", "check", str(file)).err
    file.write_text("tls.enable=true\ntls.client.trustCertPath=/nowhere.pem\n")
    assert "cannot read /nowhere.pem" in sprocket("config", "check", str(file)).err


@pytest.mark.parametrize("command", ["topic list", "send", "consume", "pipeline run archive"])
def test_every_kind_of_command_shows_the_options(command: str) -> None:
    shown = sprocket(*command.split(), "--help").out
    assert "--tls-authorities" in shown
    assert "--tls" not in sprocket("broker", "--help").out


def test_a_pipeline_asks_with_tls(names: str, authority: Authority, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    outcome = sprocket(
        "pipeline", "run", "archive", "--topic", "nowhere", "--to", str(tmp_path / "to"),
        "--nameserver", names, *options(authority),
    )  # fmt: skip
    assert outcome.code == 1
    assert "nowhere" in outcome.err
    assert "TLS" not in outcome.err


def test_a_profile_has_servers_and_tls(names: str, authority: Authority, tmp_path: Path) -> None:
    file = tls_profile(names, authority, tmp_path)
    listed = ("topic", "list", "--all")
    by_option = sprocket(*listed, "--profile", "here", SPROCKET_CONFIG=str(file))
    assert by_option.code == 0, by_option.err
    by_variable = sprocket(*listed, SPROCKET_CONFIG=str(file), SPROCKET_PROFILE="here")
    assert by_variable.lines == by_option.lines
    elsewhere = sprocket(
        *listed, "--profile", "here", "-n", "127.0.0.1:1", SPROCKET_CONFIG=str(file)
    )
    assert "127.0.0.1:1 cannot be reached" in elsewhere.err
    assert "valid" in sprocket("config", "check", str(file)).out
    file.write_text("[profile.here]\ntls = true\n")
    mixed = sprocket(
        *listed, "--profile", "here", SPROCKET_CONFIG=str(file), NAMESRV_ADDR="127.0.0.1:1"
    )
    assert (mixed.code, "[profile.here] names no servers" in mixed.err) == (2, True)
    file.write_text("[profile.here]\nnameserver = 'n:9876'\n")
    wrong = "unknown setting 'profile.here.nameserver'; did you mean 'nameservers'?"
    assert wrong in sprocket("config", "check", str(file)).err


def test_a_pipeline_asks_by_a_profile(names: str, authority: Authority, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    file = str(tls_profile(names, authority, tmp_path))
    run = ("pipeline", "run", "volume", "--topic", "nowhere", "--profile", "here")
    outcome = sprocket(*run, SPROCKET_CONFIG=file)
    assert outcome.code == 1
    assert "nowhere" in outcome.err
    assert "TLS" not in outcome.err
    both = sprocket(*run, *options(authority), SPROCKET_CONFIG=file)
    assert "give --profile or options of TLS, not both" in both.err
    mirror = ("pipeline", "run", "mirror", "--topic", "t", "--state", "m", "--profile", "here")
    none = sprocket(*mirror, SPROCKET_CONFIG=file)
    assert "which target? Give to-nameserver, or a to-profile" in none.err
    unknown = sprocket(*mirror, "--to-profile", "there", SPROCKET_CONFIG=file)
    assert "has no table [profile.there]" in unknown.err


def tls_profile(names: str, authority: Authority, folder: Path) -> Path:
    """A file with a profile for the node, beside settings that do not count for it."""
    mine = authority.issue("operator")
    file = folder / "sprocket.toml"
    file.write_text(
        '[client]\naccess_key = "somebody"\nsecret_key = "else"\n'
        f'[profile.here]\nnameservers = "{names}"\ntls = true\ntls_key = "{mine.key}"\n'
        f'tls_authorities = "{authority.path}"\ntls_certificate = "{mine.certificate}"\n'
    )
    return file


def test_a_profile_asks_as_its_user(closed: Command, tmp_path: Path) -> None:
    file = tmp_path / "sprocket.toml"
    file.write_text('[profile.root]\naccess_key = "root"\nsecret_key = "root\'s"\n')
    settings = {"SPROCKET_CONFIG": str(file), "SPROCKET_CLIENT_ACCESS_KEY": "nobody"}
    file.chmod(0o644)
    refused = closed("user", "list", "--profile", "root", **settings)
    assert "others may read it" in refused.err
    file.chmod(0o600)
    assert "root" in closed("user", "list", "--profile", "root", **settings).out
    assert closed("user", "list", **settings).code != 0


def test_a_pipeline_passes_a_profile_on_by_name() -> None:
    profile = Profile("here", "/etc/sprocket.toml")
    job = Volume(nameservers="n:1", topics=("orders",), profile=profile)
    options = job.reading()
    assert (options["profile"], options["configFile"]) == ("here", "/etc/sprocket.toml")
    assert job.servers.another("m:1", None, None).options() == {
        "namesrvAddr": "m:1", "profile": "here", "configFile": "/etc/sprocket.toml",
    }  # fmt: skip
    with pytest.raises(UsageError, match="give a profile, or keys and TLS"):
        _ = Volume(nameservers="n:1", keys=AccessKeys("a", "b"), profile=profile).servers
