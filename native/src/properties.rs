//! Reads the text of a message's properties: `name 0x01 value 0x02`, repeated.
//!
//! Only what the broker stores unchanged is read; everything else gives `None`.
//! Source: MessageDecoder.string2messageProperties of RocketMQ 5.x.

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
#[derive(Debug, PartialEq)]
pub struct Properties<'a> {
    pub tag_code: i32,
    pub unique_key: &'a [u8],
    /// Words by which the message can be found.
    pub keys: &'a [u8],
}

/// Java's `String.hashCode` of ASCII characters, going on from the hash of what is before them.
pub fn java_hash(before: i32, text: &[u8]) -> i32 {
    text.iter().fold(before, |hash, &byte| {
        hash.wrapping_mul(31).wrapping_add(i32::from(byte))
    })
}

/// Reads a text that ends with a pair.
pub fn read<'a>(text: &'a [u8], names: &Names) -> Option<Properties<'a>> {
    let mut seen: [&[u8]; PAIRS_MAX] = [b""; PAIRS_MAX];
    let mut found = Properties { tag_code: 0, unique_key: b"", keys: b"" };
    let pairs = text.strip_suffix(&[PAIR_END])?;
    for (count, pair) in pairs.split(|&byte| byte == PAIR_END).enumerate() {
        let middle = pair.iter().position(|&byte| byte == NAME_END)?;
        let (name, value) = (&pair[..middle], &pair[middle + 1..]);
        if name.is_empty() || value.is_empty() || value.contains(&NAME_END) {
            return None;
        }
        if count >= PAIRS_MAX || seen[..count].contains(&name) {
            return None;
        }
        seen[count] = name;
        if name == names.unique_key {
            found.unique_key = value;
        } else if name == names.tags {
            found.tag_code = java_hash(0, value);
        } else if name == names.keys {
            found.keys = value;
        } else if name.starts_with(&names.special_prefix)
            || names.special.iter().any(|special| special == name)
        {
            return None;
        }
    }
    let is_usual = |byte: &u8| matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b'\\');
    let length = found.unique_key.len();
    if length == 0 || length > UNIQUE_KEY_BYTES_MAX || !found.unique_key.iter().all(is_usual) {
        return None;
    }
    // Python splits words at more characters than blanks.
    found.keys.iter().all(|byte| (b' '..=b'~').contains(byte)).then_some(found)
}

impl<'a> Properties<'a> {
    /// The unique key, then each other key once.
    pub fn each_key(&self, mut found: impl FnMut(&'a [u8])) {
        found(self.unique_key);
        let mut words: Vec<&[u8]> = Vec::new();
        for word in self.keys.split(|&byte| byte == b' ') {
            if !word.is_empty() && !words.contains(&word) {
                words.push(word);
                found(word);
            }
        }
    }
}
