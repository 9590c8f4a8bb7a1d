"""Bytes of text files that people write, decoded. Pure.

Editors put a byte order mark before a text, Windows' also write UTF-16, and comments may be in any
encoding. Bytes that are not UTF-8 become lone surrogates, as everywhere in Python, and harm only
where they are used: `undecoded` finds them. So does half a character at the end of UTF-16.
"""

from __future__ import annotations

import codecs

from sprocket.base.errors import UsageError

#: In place of half a character: what a byte 0xFF becomes, which is in no UTF-8.
_HALF = "\udcff"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode(content: bytes) -> str:
    """The text of a file, without its byte order mark."""
    if content.startswith(_UTF16):
        whole = len(content) // 2 * 2
        text = content[:whole].decode("utf-16", "surrogatepass")
        return text if whole == len(content) else text + _HALF
    return content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def undecoded(text: str) -> str | None:
    """The first byte of a decoded text that was not UTF-8, in words; None if all of it was."""
    found = next((ord(each) for each in text if 0xDC80 <= ord(each) <= 0xDCFF), None)
    return None if found is None else f"byte 0x{found - 0xDC00:02X}"


def decode_strictly(content: bytes, name: str) -> str:
    """The text of a file all of which counts.

    Args:
        name: the file's name, for the error message.

    Raises:
        UsageError: a byte is not UTF-8; the text names the line.
    """
    text = decode(content)
    wrong = undecoded(text)
    if wrong is None:
        return text
    number = next(n for n, line in enumerate(text.split("\n"), 1) if undecoded(line))
    raise UsageError(f"{name}:{number}: {wrong} is not UTF-8; save the file in UTF-8")
