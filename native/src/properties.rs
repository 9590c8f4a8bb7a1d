//! Reads the text of a message's properties: `name 0x01 value 0x02`, repeated.
//!
//! Only what the broker stores unchanged is read; everything else gives `None`.
//! Source: MessageDecoder.string2messageProperties of RocketMQ 5.x.

use memchr::{memchr, memchr2};
use std::ops::Range;

pub const NAME_END: u8 = 1;
pub const PAIR_END: u8 = 2;

const PAIRS_MAX: usize = 32;
const UNIQUE_KEY_BYTES_MAX: usize = 128;

/// Names that mean something here.
pub struct Names {
    pub tags: Vec<u8>,
    pub keys: Vec<u8>,
    pub unique_key: Vec<u8>,
    /// Those of properties that the broker changes, or that make a message wait.
    pub special: Vec<Vec<u8>>,
    /// Begins other names of that kind.
    pub special_prefix: Vec<u8>,
}

/// What the properties say, as places in their text.
#[derive(Debug, Default, PartialEq)]
pub struct Properties {
    pub tag_code: i32,
    pub unique_key: Range<usize>,
    /// Words by which the message can be found.
    pub keys: Range<usize>,
}

/// Java's `String.hashCode` of ASCII characters, going on from the hash of what is before them.
pub fn java_hash(before: i32, text: &[u8]) -> i32 {
    text.iter().fold(before, |hash, &byte| {
        hash.wrapping_mul(31).wrapping_add(i32::from(byte))
    })
}

/// Reads a text that ends with a pair.
pub fn read(text: &[u8], names: &Names) -> Option<Properties> {
    let mut seen: [&[u8]; PAIRS_MAX] = [b""; PAIRS_MAX];
    let mut found = Properties::default();
    let (mut at, mut count) = (0, 0);
    while at < text.len() {
        let middle = at + memchr2(NAME_END, PAIR_END, &text[at..])?;
        let end = middle + memchr(PAIR_END, &text[middle..])?;
        if middle == at || end <= middle + 1 {
            return None; // no name or no value
        }
        let (name, value) = (&text[at..middle], &text[middle + 1..end]);
        if memchr(NAME_END, value).is_some() || count >= PAIRS_MAX || seen[..count].contains(&name)
        {
            return None;
        }
        seen[count] = name;
        count += 1;
        at = end + 1;
        if name == names.unique_key {
            found.unique_key = middle + 1..end;
        } else if name == names.tags {
            found.tag_code = java_hash(0, value);
        } else if name == names.keys {
            found.keys = middle + 1..end;
        } else if name.starts_with(&names.special_prefix)
            || names.special.iter().any(|special| special == name)
        {
            return None;
        }
    }
    let is_usual = |byte: &u8| matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b'\\');
    let unique_key = &text[found.unique_key.clone()];
    let length = unique_key.len();
    if length == 0 || length > UNIQUE_KEY_BYTES_MAX || !unique_key.iter().all(is_usual) {
        return None;
    }
    // Python splits words at more characters than blanks.
    let keys = &text[found.keys.clone()];
    keys.iter()
        .all(|byte| (b' '..=b'~').contains(byte))
        .then_some(found)
}

impl Properties {
    /// The unique key, then each other key once, of the text that was read.
    pub fn each_key<'a>(&self, text: &'a [u8], mut found: impl FnMut(&'a [u8])) {
        found(&text[self.unique_key.clone()]);
        if self.keys.is_empty() {
            return;
        }
        let mut words: Vec<&[u8]> = Vec::new();
        for word in text[self.keys.clone()].split(|&byte| byte == b' ') {
            if !word.is_empty() && !words.contains(&word) {
                words.push(word);
                found(word);
            }
        }
    }
}
