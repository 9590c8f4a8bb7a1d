"""What is wrong when TLS fails, in words that say what to change.

Source of the numbers: X509_V_ERR of OpenSSL; of the names: its reasons, as Python gives them.
"""

from __future__ import annotations

import ssl

_EXPIRED, _NOT_YET = 10, 9
_UNKNOWN = (2, 18, 19, 20, 21, 27)
_WRONG_NAME = (62, 64)
_PLAIN = (
    "WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE",
    "RECORD_TOO_SMALL", "UNEXPECTED_MESSAGE",
)  # fmt: skip
_REFUSED = {
    "UNKNOWN_CA": "it does not know the authority of the certificate",
    "CERTIFICATE_EXPIRED": "the certificate has expired",
    "CERTIFICATE_UNKNOWN": "it does not accept the certificate",
    "BAD_CERTIFICATE": "it does not accept the certificate",
    "CERTIFICATE_REVOKED": "the certificate is revoked",
    "UNSUPPORTED_CERTIFICATE": "the certificate is not made for this use",
    "CERTIFICATE_REQUIRED": "it demands a certificate, and none was shown",
    "HANDSHAKE_FAILURE": "it shares no way with this side, or demands a certificate",
    "PROTOCOL_VERSION": "it speaks no version of TLS that this side speaks",
    "UNRECOGNIZED_NAME": "it has no certificate for the name that was asked for",
    "ACCESS_DENIED": "it does not let this certificate in",
}


def in_words(error: ssl.SSLError) -> str:
    """What went wrong with the other side of a connection."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _of_certificate(error.verify_code, error.verify_message)
    reason = getattr(error, "reason", None) or ""
    if "ALERT_" in reason:
        alert = reason.partition("ALERT_")[2]
        return f"the other side refuses: {_REFUSED.get(alert, alert.lower().replace('_', ' '))}"
    if reason in _PLAIN:
        return "the other side speaks no TLS"
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "the other side shows no certificate, and one is required"
    if reason in ("UNSUPPORTED_PROTOCOL", "NO_SHARED_CIPHER", "NO_PROTOCOLS_AVAILABLE"):
        return f"the two sides share no way to speak TLS ({reason.lower().replace('_', ' ')})"
    return reason.lower().replace("_", " ") or str(error)


def _of_certificate(code: int, message: str) -> str:
    if code == _EXPIRED:
        return "the other side's certificate, or one of its chain, has expired"
    if code == _NOT_YET:
        return "the other side's certificate is not valid yet; perhaps a clock is wrong"
    if code in _UNKNOWN:
        return (
            f"the other side's certificate is of an unknown authority ({message}): the setting of "
            "authorities must name the file of its authority"
        )
    if code in _WRONG_NAME:
        return f"the other side's certificate is for another name: {message.rstrip('.')}"
    return f"the other side's certificate is not accepted: {message}"
