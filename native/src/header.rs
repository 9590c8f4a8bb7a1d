//! Reads the JSON header of a send (code 310), if it is one that nothing is special about.
//!
//! Whatever is not exactly as clients of RocketMQ write it gives `None`: then the broker's reader
//! in Python decides. So this reader may be strict, but must never accept what that one reads
//! differently. Source of the fields: SendMessageRequestHeaderV2 of RocketMQ 4.9 and 5.x.

use memchr::{memchr, memchr2};

/// The code of a send with fields of one letter.
const SEND: i64 = 310;
const ONEWAY: i64 = 2;
/// Digits that surely fit into 32 and 64 bits.
const INT_DIGITS_MAX: usize = 9;
const LONG_DIGITS_MAX: usize = 18;

/// What a send says besides its body.
#[derive(Debug, PartialEq)]
pub struct Header<'a> {
    pub opaque: i32,
    pub is_oneway: bool,
    pub topic: &'a [u8],
    pub queue: u32,
    pub sys_flag: i32,
    pub born_ms: i64,
    pub flag: i32,
    pub reconsume_times: i32,
    /// The text of the properties, still as it is in JSON.
    pub properties: &'a [u8],
}

/// A place in a header.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.bytes.get(self.at) == Some(&wanted)).then(|| self.at += 1)
    }

    fn is_next(&mut self, wanted: u8) -> bool {
        self.take(wanted).is_some()
    }

    /// A text between quotes, with its escapes; ASCII only.
    fn text(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            self.at += memchr2(b'"', b'\\', self.bytes.get(self.at..)?)?;
            if self.bytes[self.at] == b'"' {
                break;
            }
            self.at += 2;
        }
        let text = &self.bytes[start..self.at];
        self.at += 1;
        let is_usual = text
            .iter()
            .fold(true, |all, byte| all & (b' '..=b'~').contains(byte));
        is_usual.then_some(text)
    }

    /// A number without quotes.
    fn number(&mut self) -> Option<i64> {
        let start = self.at;
        self.is_next(b'-');
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        whole(&self.bytes[start..self.at], LONG_DIGITS_MAX)
    }
}

/// A number in its shortest form, of at most so many digits.
fn whole(text: &[u8], digits_max: usize) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_shortest = match digits {
        [] => false,
        [b'0'] => digits.len() == text.len(),
        [first, ..] => *first != b'0',
    };
    if !is_shortest || digits.len() > digits_max || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits
        .iter()
        .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    Some(if digits.len() < text.len() {
        -value
    } else {
        value
    })
}

fn int(text: &[u8]) -> Option<i32> {
    whole(text, INT_DIGITS_MAX).map(|value| value as i32)
}

/// Reads a header; `None` if it must be read by the reader in Python.
pub fn read(bytes: &[u8]) -> Option<Header<'_>> {
    let mut scan = Scan { bytes, at: 0 };
    let (mut code, mut flag, mut opaque) = (None, None, None);
    let mut fields = None;
    let mut seen = 0u8;
    scan.take(b'{')?;
    loop {
        let name = scan.text()?;
        scan.take(b':')?;
        let bit = match name {
            b"code" => {
                code = Some(scan.number()?);
                1
            }
            b"extFields" => {
                fields = Some(read_fields(&mut scan)?);
                2
            }
            b"flag" => {
                flag = Some(scan.number()?);
                4
            }
            b"language" => {
                plain(scan.text()?)?;
                8
            }
            b"opaque" => {
                opaque = Some(i32::try_from(scan.number()?).ok()?);
                16
            }
            b"serializeTypeCurrentRPC" => {
                plain(scan.text()?)?;
                32
            }
            b"version" => {
                i32::try_from(scan.number()?).ok()?;
                64
            }
            _ => return None,
        };
        if seen & bit != 0 {
            return None;
        }
        seen |= bit;
        if scan.is_next(b'}') {
            break;
        }
        scan.take(b',')?;
    }
    let flag = flag.unwrap_or(0);
    if scan.at != bytes.len() || code != Some(SEND) || flag & !ONEWAY != 0 {
        return None;
    }
    let mut header = fields?;
    header.opaque = opaque?;
    header.is_oneway = flag == ONEWAY;
    Some(header)
}

/// A text without escapes.
fn plain(text: &[u8]) -> Option<&[u8]> {
    (!text.contains(&b'\\')).then_some(text)
}

fn read_fields<'a>(scan: &mut Scan<'a>) -> Option<Header<'a>> {
    let (mut topic, mut queue, mut properties) = (None, None, None);
    let mut header = Header {
        opaque: 0,
        is_oneway: false,
        topic: b"",
        queue: 0,
        sys_flag: 0,
        born_ms: 0,
        flag: 0,
        reconsume_times: 0,
        properties: b"",
    };
    let mut seen = 0u32;
    scan.take(b'{')?;
    loop {
        let &[letter @ b'a'..=b'n'] = scan.text()? else {
            return None;
        };
        scan.take(b':')?;
        let text = scan.text()?;
        if seen >> (letter - b'a') & 1 != 0 {
            return None;
        }
        seen |= 1 << (letter - b'a');
        match letter {
            b'a' | b'c' | b'n' => drop(plain(text)?),
            b'b' => topic = Some(plain(text)?),
            b'd' | b'l' => drop(int(text)?),
            b'e' => queue = Some(u32::try_from(int(text)?).ok()?),
            b'f' => header.sys_flag = int(text)?,
            b'g' => header.born_ms = whole(text, LONG_DIGITS_MAX)?,
            b'h' => header.flag = int(text)?,
            b'i' => properties = Some(text),
            b'j' => header.reconsume_times = int(text)?,
            _ if text == b"false" => (), // unit mode and batch
            _ => return None,
        }
        if scan.is_next(b'}') {
            break;
        }
        scan.take(b',')?;
    }
    header.topic = topic?;
    header.queue = queue?;
    header.properties = properties?;
    Some(header)
}

/// Adds a text to `out` with its escapes resolved; `None` if it is not ASCII, or one is unusual.
pub fn unescape(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = text;
    while let Some(at) = memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let escape = *rest.get(at + 1)?;
        let (byte, length) = match escape {
            b'u' => match rest.get(at + 2..at + 6)? {
                [b'0', b'0', high @ b'0'..=b'7', low] => {
                    ((high - b'0') << 4 | char::from(*low).to_digit(16)? as u8, 6)
                }
                _ => return None,
            },
            b'"' | b'\\' | b'/' => (escape, 2),
            b'b' => (8, 2),
            b't' => (9, 2),
            b'n' => (10, 2),
            b'f' => (12, 2),
            b'r' => (13, 2),
            _ => return None,
        };
        out.push(byte);
        rest = &rest[at + length..];
    }
    out.extend_from_slice(rest);
    Some(())
}
