"""Errors of TLS in words."""

from __future__ import annotations

import re
import ssl

import pytest

from sprocket.remoting.tls.faults import in_words


def of_certificate(code: int, message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = code, message
    return error


def with_reason(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] something")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (10, "certificate has expired", "has expired"),
        (9, "certificate is not yet valid", "a clock is wrong"),
        (18, "self-signed certificate", r"unknown authority \(self-signed certificate\)"),
        (20, "unable to get local issuer certificate", "unknown authority"),
        (62, "Hostname mismatch, certificate is not valid for 'x'.", "another name: .* 'x'$"),
        (23, "certificate revoked", "not accepted: certificate revoked"),
    ],
)
def test_a_certificate_that_is_not_accepted_has_its_reason(
    code: int, message: str, words: str
) -> None:
    assert re.search(words, in_words(of_certificate(code, message)))


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("TLSV1_ALERT_UNKNOWN_CA", "does not know the authority"),
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", "the certificate has expired"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "demands a certificate"),
        ("TLSV1_ALERT_SOMETHING_NEW", "refuses: something new"),
        ("WRONG_VERSION_NUMBER", "speaks no TLS"),
        ("NO_SHARED_CIPHER", "share no way to speak TLS"),
        ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "shows no certificate"),
        ("DECRYPTION_FAILED_OR_BAD_RECORD_MAC", "decryption failed or bad record mac"),
    ],
)
def test_a_failed_handshake_has_its_reason(reason: str, words: str) -> None:
    assert words in in_words(with_reason(reason))


def test_an_error_without_a_reason_keeps_its_text() -> None:
    assert "something odd" in in_words(ssl.SSLError(1, "something odd"))
