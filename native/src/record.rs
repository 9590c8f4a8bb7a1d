//! The bytes of one message: its record in the log, and its entry in the queue.
//!
//! Source: CommitLog.DefaultAppendMessageCallback and ConsumeQueue of RocketMQ 5.x.

use crate::header::Header;

const MAGIC: u32 = 0xDAA3_20A7;
/// Of a record's head without the two addresses.
const HEAD_BYTES: usize = 72;
/// An address has 8 bytes with IPv4 and 20 with IPv6; bits of the system flag say which has 20.
const V4_BYTES: usize = 8;
const V6_BYTES: usize = 20;
const BORN_HOST_V6: i32 = 0x10;
const STORE_HOST_V6: i32 = 0x20;
const CRC_MASK: u32 = 0x7FFF_FFFF;
pub const ENTRY_BYTES: usize = 20;
/// A longer topic has another form of record.
pub const TOPIC_BYTES_MAX: usize = 127;

/// What the records of one read have in common.
pub struct Common<'a> {
    pub born_host: &'a [u8],
    pub store_host: &'a [u8],
    pub stored_ms: i64,
    /// The broker's own properties, which follow the sender's.
    pub marks: &'a [u8],
}

/// Whether these bytes are an address.
pub fn is_host(bytes: &[u8]) -> bool {
    matches!(bytes.len(), V4_BYTES | V6_BYTES)
}

impl Common<'_> {
    /// Bits of the system flag.
    pub fn host_flags(&self) -> i32 {
        let bit = |host: &[u8], bit| if host.len() == V6_BYTES { bit } else { 0 };
        bit(self.born_host, BORN_HOST_V6) | bit(self.store_host, STORE_HOST_V6)
    }
}

pub fn record_bytes(topic: &[u8], properties: &[u8], body: &[u8], common: &Common) -> usize {
    let hosts = common.born_host.len() + common.store_host.len();
    let texts = topic.len() + properties.len() + common.marks.len();
    HEAD_BYTES + hosts + body.len() + 1 + 2 + texts
}

/// Writes a record into `out`, which has its size.
#[allow(clippy::too_many_arguments)]
pub fn write(
    out: &mut [u8],
    header: &Header,
    sys_flag: i32,
    queue_offset: i64,
    log_offset: i64,
    properties: &[u8],
    body: &[u8],
    common: &Common,
) {
    let mut rest = out;
    let size = rest.len() as u32;
    let mut put = |bytes: &[u8]| {
        let (here, behind) = std::mem::take(&mut rest).split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        rest = behind;
    };
    put(&size.to_be_bytes());
    put(&MAGIC.to_be_bytes());
    put(&(crc32fast::hash(body) & CRC_MASK).to_be_bytes());
    put(&header.queue.to_be_bytes());
    put(&header.flag.to_be_bytes());
    put(&queue_offset.to_be_bytes());
    put(&log_offset.to_be_bytes());
    put(&sys_flag.to_be_bytes());
    put(&header.born_ms.to_be_bytes());
    put(common.born_host);
    put(&common.stored_ms.to_be_bytes());
    put(common.store_host);
    put(&header.reconsume_times.to_be_bytes());
    put(&0i64.to_be_bytes()); // the offset of a prepared message
    put(&(body.len() as u32).to_be_bytes());
    put(body);
    put(&[header.topic.len() as u8]);
    put(header.topic);
    put(&((properties.len() + common.marks.len()) as u16).to_be_bytes());
    put(properties);
    put(common.marks);
}

/// Writes a queue's entry.
pub fn write_entry(out: &mut [u8], log_offset: i64, size: usize, tag_code: i32) {
    out[..8].copy_from_slice(&log_offset.to_be_bytes());
    out[8..12].copy_from_slice(&(size as u32).to_be_bytes());
    out[12..20].copy_from_slice(&i64::from(tag_code).to_be_bytes());
}
