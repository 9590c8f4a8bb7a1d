"""Authorities and certificates for tests, made by the command `openssl`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

OPENSSL = shutil.which("openssl")

#: Names of the machine that the tests run on.
HERE = "DNS:localhost,IP:127.0.0.1,IP:::1"
_FOREVER = ("20200101000000Z", "21200101000000Z")
_LONG_AGO = ("20200101000000Z", "20200102000000Z")
_SETTINGS = """
[ca]
default_ca = one
[one]
database = {folder}/index.txt
new_certs_dir = {folder}
certificate = {folder}/ca.pem
private_key = {folder}/ca.key
rand_serial = yes
default_md = sha256
unique_subject = no
policy = any
x509_extensions = of_certificate
[any]
commonName = supplied
[req]
distinguished_name = nobody
[nobody]
[of_authority]
basicConstraints = critical,CA:true
keyUsage = keyCertSign
[of_certificate]
basicConstraints = CA:false
subjectAltName = {names}
"""


class Issued(NamedTuple):
    """A certificate and its key, in files."""

    certificate: str
    key: str


class Authority:
    """An authority of its own, in a folder.

    Attributes:
        path: the file of its own certificate.
    """

    def __init__(self, folder: Path, name: str = "tests") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = str(folder / "ca.pem")
        (folder / "index.txt").touch()
        self._write_settings(HERE)
        self._run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "ca.key")
        self._run(
            "req", "-x509", "-new", "-config", "openssl.cnf", "-extensions", "of_authority",
            "-key", "ca.key", "-subj", f"/CN={name}", "-days", "36500", "-out", "ca.pem",
        )  # fmt: skip

    def issue(
        self,
        name: str,
        *,
        names: str = HERE,
        is_expired: bool = False,
        password: str | None = None,
        is_rsa: bool = False,
    ) -> Issued:
        """A certificate of this authority.

        Args:
            name: of the files, and of whom it is for.
            names: the names and addresses that it is for, as OpenSSL writes them.
            password: encrypts the key.
            is_rsa: whether the key is of RSA and not of an elliptic curve.
        """
        self._write_settings(names)
        kind = ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
        if not is_rsa:
            kind = ["EC", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        lock = [] if password is None else ["-aes256", "-pass", f"pass:{password}"]
        self._run("genpkey", "-algorithm", *kind, *lock, "-out", f"{name}.key")
        open_ = [] if password is None else ["-passin", f"pass:{password}"]
        self._run(
            "req", "-new", "-config", "openssl.cnf", "-key", f"{name}.key", *open_,
            "-subj", f"/CN={name}", "-out", f"{name}.csr",
        )  # fmt: skip
        since, until = _LONG_AGO if is_expired else _FOREVER
        self._run(
            "ca", "-batch", "-config", "openssl.cnf", "-in", f"{name}.csr", "-notext",
            "-startdate", since, "-enddate", until, "-out", f"{name}.pem",
        )  # fmt: skip
        return Issued(str(self.folder / f"{name}.pem"), str(self.folder / f"{name}.key"))

    def _write_settings(self, names: str) -> None:
        text = _SETTINGS.format(folder=self.folder, names=names)
        (self.folder / "openssl.cnf").write_text(text)

    def _run(self, *words: str) -> None:
        assert OPENSSL is not None
        subprocess.run([OPENSSL, *words], cwd=self.folder, check=True, capture_output=True)
