"""Files that change while they are in use."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from sprocket.base.errors import ConfigError, ConnectFailed
from sprocket.remoting.pool import Pool
from sprocket.remoting.tls.certificates import WatchedFiles, serving, watched_serving
from tests.certificates import Authority
from tests.remoting.tls.parts import echoed, pair, serving_with, trusting
from tests.support import run


class Making:
    """Makes something new each time; fails while it is told to."""

    def __init__(self) -> None:
        self.count = 0
        self.fault = ""

    def __call__(self) -> ssl.SSLContext:
        if self.fault:
            raise ConfigError(self.fault)
        self.count += 1
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def changed(path: Path, text: str) -> None:
    """A file of the same length, replaced by a rename as careful programs do."""
    new = path.with_suffix(".new")
    new.write_text(text)
    os.replace(new, path)


def test_files_are_read_again_only_when_they_have_changed(tmp_path: Path) -> None:
    file, make = tmp_path / "a.pem", Making()
    file.write_text("1")
    files = WatchedFiles([str(file)], make)
    first = files.current(0.0)
    assert files.current(10.0) is first
    changed(file, "2")
    assert files.current(10.2) is first, "it looks each half second only"
    assert files.current(10.5) is not first
    assert make.count == 2


def test_a_link_that_leads_elsewhere_is_a_change(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.pem").write_text(name)
    os.symlink(tmp_path / "one", tmp_path / "now")
    make = Making()
    files = WatchedFiles([str(tmp_path / "now" / "a.pem")], make)
    files.current(0.0)
    os.remove(tmp_path / "now")
    os.symlink(tmp_path / "two", tmp_path / "now")
    files.current(1.0)
    assert make.count == 2


def test_what_does_not_fit_leaves_the_old_in_use_and_warns_once_after_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, make = tmp_path / "a.pem", Making()
    file.write_text("1")
    files = WatchedFiles([str(file)], make)
    first = files.current(0.0)
    changed(file, "2")
    make.fault = "the key does not belong"
    assert files.current(1.0) is first
    assert files.current(2.0) is first
    assert "stay" not in caplog.text, "the key may come a moment later"
    for now in (4.0, 5.0, 6.0):
        assert files.current(now) is first
    assert caplog.text.count("the certificates in use stay") == 1
    make.fault = ""
    assert files.current(7.0) is not first, "it tries again though the file is the same"


def test_a_file_that_is_gone_for_a_moment_changes_nothing(tmp_path: Path) -> None:
    file, make = tmp_path / "a.pem", Making()
    file.write_text("1")
    files = WatchedFiles([str(file)], make)
    first = files.current(0.0)
    file.unlink()
    make.fault = "cannot read"
    assert files.current(1.0) is first
    make.fault = ""
    file.write_text("3")
    assert files.current(2.0) is not first


def test_files_that_have_never_been_right_are_an_error_each_time(tmp_path: Path) -> None:
    make = Making()
    make.fault = "no such file"
    files = WatchedFiles([str(tmp_path / "a")], make)
    for now in (0.0, 1.0):
        with pytest.raises(ConfigError, match="no such file"):
            files.current(now)


def test_a_new_certificate_counts_for_new_connections_and_old_ones_stay(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger", "stranger")
    issued = authority.issue("renewed")
    new_texts = [Path(each).read_text() for each in stranger.issue("renewed")]

    async def main() -> None:
        async with (
            pair(serving_with(issued), trusting(authority)) as (server, old),
            Pool(tls=trusting(stranger)) as knows_new,
        ):
            assert await echoed(server, old) == b"body"
            with pytest.raises(ConnectFailed, match="unknown authority"):
                await echoed(server, knows_new)
            (peer,) = server.peers
            for path, text in zip(issued, new_texts, strict=True):
                changed(Path(path), text)

            async def is_taken() -> bool:
                async with Pool(tls=trusting(stranger)) as pool:
                    try:
                        return await echoed(server, pool) == b"body"
                    except ConnectFailed:
                        return False

            while not await is_taken():
                pass
            assert await echoed(server, old) == b"body"
            assert peer in server.peers
            async with Pool(tls=trusting(authority)) as late:
                with pytest.raises(ConnectFailed, match="unknown authority"):
                    await echoed(server, late)

    run(main())


def test_a_server_watches_all_of_its_files(authority: Authority) -> None:
    config = serving_with(
        authority.issue("server"), client_certificates="require", authorities=authority.path
    )
    made = watched_serving(config).current(0.0)
    assert made.verify_mode is ssl.CERT_REQUIRED
    assert made.options & ssl.OP_NO_RENEGOTIATION


def test_a_certificate_that_has_expired_is_a_warning_where_it_is_served(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    serving(serving_with(authority.issue("good")))
    serving(serving_with(authority.issue("rsa", is_rsa=True), client_certificates="none"))
    assert caplog.text == ""
    old = authority.issue("old", is_expired=True)
    serving(serving_with(old))
    assert f"certificate in {old.certificate}: certificate has expired" in caplog.text
