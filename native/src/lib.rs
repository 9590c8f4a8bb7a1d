//! The kernel of a send: from the bytes of a read to records, queue entries and replies.
//!
//! It takes the first sends of a read that nothing is special about, and makes no Python object for
//! a message. It stops at the first that it does not understand; the broker's path in Python, whose
//! results it must equal byte by byte, takes it from there. It keeps no state: log and queues belong
//! to Python, and are read and set by their attributes in each call.

mod header;
mod properties;
mod record;

use header::Header;
use properties::{java_hash, Names, Properties, PAIR_END};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyString, PyTuple};
use record::{Common, ENTRY_BYTES, TOPIC_BYTES_MAX};
use std::ops::Range;

const PREFIX_BYTES: usize = 8;
const LENGTH_BYTES: usize = 4;
/// Longer headers are left to Python; the bits above are the way of serialisation, 0 for JSON.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// So many messages at most are taken by one call.
const MESSAGES_MAX: usize = 1024;

/// The gaps of a reply: log offset, queue number, queue offset, unique key, opaque.
const GAPS: usize = 5;

/// One send of the read.
struct Send<'a> {
    header: Header<'a>,
    body: &'a [u8],
    /// Its properties in the text of all, and what they say.
    text: Range<usize>,
    said: Properties,
    topic: usize,
    queue: usize,
    /// Where the frame ends in the read.
    end: usize,
}

/// What Python says about a topic.
struct Topic<'a, 'py> {
    name: &'a [u8],
    text: Bound<'py, PyString>,
    queues: u32,
    more_flags: i32,
    hash: i32,
    count: usize,
    bytes: usize,
}

/// A queue that is written, with its end.
struct Queue<'py> {
    object: Bound<'py, PyAny>,
    buffer: PyBuffer<u8>,
    topic: usize,
    number: u32,
    base: i64,
    room_end: i64,
    end: i64,
    first_log_offset: i64,
}

/// Takes sends; made once for each broker.
///
/// Args:
///     names: of the properties TAGS, KEYS and UNIQ_KEY.
///     special: names of properties that end the run; special_prefix begins others.
///     marks: the broker's properties as they are stored.
///     store_host: the broker's address, 8 or 20 bytes.
///     reply: the pieces of a reply's header around its gaps.
///     sender_bits: bits of the system flag that are stored.
///     properties_max: longest text of properties, bytes.
///     queue_type: the class of the queues that are written.
#[pyclass(frozen, module = "sprocket_native")]
struct SendKernel {
    names: Names,
    marks: Vec<u8>,
    store_host: Vec<u8>,
    reply: Vec<Vec<u8>>,
    sender_bits: i32,
    properties_max: usize,
    queue_type: Py<PyAny>,
}

#[pymethods]
impl SendKernel {
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        names: (Vec<u8>, Vec<u8>, Vec<u8>),
        special: Vec<Vec<u8>>,
        special_prefix: Vec<u8>,
        marks: Vec<u8>,
        store_host: Vec<u8>,
        reply: Vec<Vec<u8>>,
        sender_bits: i32,
        properties_max: usize,
        queue_type: Py<PyAny>,
    ) -> PyResult<Self> {
        if reply.len() != GAPS + 1 {
            return Err(PyValueError::new_err("a reply has five gaps"));
        }
        let (tags, keys, unique_key) = names;
        Ok(Self {
            names: Names {
                tags,
                keys,
                unique_key,
                special,
                special_prefix,
            },
            marks,
            store_host: host(&store_host)?.to_vec(),
            reply,
            sender_bits,
            properties_max,
            queue_type,
        })
    }

    /// Stores the first sends of a read.
    ///
    /// Args:
    ///     data: what was read, from the beginning of a frame on.
    ///     born_host: the sender's address, 8 or 20 bytes.
    ///     log: has `buffer`, `base`, `end` and `room_end`; its `end` rises.
    ///     queues: the queues by topic and number.
    ///     topic_of: queues and flags of a topic that takes any message; None of another one.
    ///
    /// Returns:
    ///     None if there is none. Else: the bytes that were used; the replies; how many messages;
    ///     for each topic its name, messages and bytes of records; for the key index hashes (4
    ///     bytes each) and log offsets (8 bytes each), in the machine's byte order.
    #[allow(clippy::too_many_arguments)]
    fn take<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyBytes>,
        born_host: &[u8],
        stored_ms: i64,
        body_max: usize,
        log: &Bound<'py, PyAny>,
        queues: &Bound<'py, PyDict>,
        topic_of: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let common = Common {
            born_host: host(born_host)?,
            store_host: &self.store_host,
            stored_ms,
            marks: &self.marks,
        };
        let mut run = Run {
            kernel: self,
            topics: Vec::new(),
            queues: Vec::new(),
        };
        let mut texts = Vec::new();
        let sends = run.read(py, data.as_bytes(), body_max, queues, topic_of, &mut texts)?;
        if sends.is_empty() {
            return Ok(None);
        }
        run.store(py, &sends, &texts, &common, log)
    }
}

fn host(bytes: &[u8]) -> PyResult<&[u8]> {
    if !record::is_host(bytes) {
        return Err(PyValueError::new_err("an address has 8 or 20 bytes"));
    }
    Ok(bytes)
}

/// One call of `take`.
struct Run<'k, 'a, 'py> {
    kernel: &'k SendKernel,
    topics: Vec<Topic<'a, 'py>>,
    queues: Vec<Queue<'py>>,
}

impl<'a, 'py> Run<'_, 'a, 'py> {
    /// The first sends that can be stored; nothing is changed yet.
    fn read(
        &mut self,
        py: Python<'py>,
        data: &'a [u8],
        body_max: usize,
        queues: &Bound<'py, PyDict>,
        topic_of: &Bound<'py, PyAny>,
        texts: &mut Vec<u8>,
    ) -> PyResult<Vec<Send<'a>>> {
        let mut sends: Vec<Send<'a>> = Vec::new();
        let mut at = 0;
        while sends.len() < MESSAGES_MAX {
            let begin = texts.len();
            let Some((header, body, end)) = frame(data, at) else {
                break;
            };
            if body.is_empty() || body.len() > body_max || header.topic.len() > TOPIC_BYTES_MAX {
                break;
            }
            if header::unescape(header.properties, texts).is_none() {
                break;
            }
            if texts.len() > begin && texts.last() != Some(&PAIR_END) {
                texts.push(PAIR_END); // as clients of RocketMQ 4 send it
            }
            let length = texts.len() - begin;
            if length > self.kernel.properties_max {
                break;
            }
            let Some(said) = properties::read(&texts[begin..], &self.kernel.names) else {
                break;
            };
            let Some(topic) = self.topic(py, header.topic, topic_of)? else {
                break;
            };
            if header.queue >= self.topics[topic].queues {
                break;
            }
            let Some(queue) = self.queue(py, topic, header.queue, queues)? else {
                break;
            };
            sends.push(Send {
                header,
                body,
                text: begin..texts.len(),
                said,
                topic,
                queue,
                end,
            });
            at = end;
        }
        Ok(sends)
    }

    fn topic(
        &mut self,
        py: Python<'py>,
        name: &'a [u8],
        topic_of: &Bound<'py, PyAny>,
    ) -> PyResult<Option<usize>> {
        if let Some(at) = self.topics.iter().position(|topic| topic.name == name) {
            return Ok(Some(at));
        }
        let Ok(text) = std::str::from_utf8(name) else {
            return Ok(None);
        };
        let text = PyString::new(py, text);
        let said = topic_of.call1((&text,))?;
        if said.is_none() {
            return Ok(None);
        }
        let (queues, more_flags) = said.extract()?;
        let hash = java_hash(java_hash(0, name), b"#");
        self.topics.push(Topic {
            name,
            text,
            queues,
            more_flags,
            hash,
            count: 0,
            bytes: 0,
        });
        Ok(Some(self.topics.len() - 1))
    }

    fn queue(
        &mut self,
        py: Python<'py>,
        topic: usize,
        number: u32,
        queues: &Bound<'py, PyDict>,
    ) -> PyResult<Option<usize>> {
        let is_it = |queue: &Queue| queue.topic == topic && queue.number == number;
        if let Some(at) = self.queues.iter().position(is_it) {
            return Ok(Some(at));
        }
        let Some(object) = queues.get_item((&self.topics[topic].text, number))? else {
            return Ok(None);
        };
        if !object.get_type().is(self.kernel.queue_type.bind(py)) {
            return Ok(None);
        }
        let base: i64 = object.getattr(intern!(py, "base"))?.extract()?;
        let room_end: i64 = object.getattr(intern!(py, "room_end"))?.extract()?;
        let end: i64 = object.getattr(intern!(py, "max_offset"))?.extract()?;
        let buffer = PyBuffer::get(&object.getattr(intern!(py, "buffer"))?)?;
        if end < base || end >= room_end || buffer.readonly() {
            return Ok(None);
        }
        self.queues.push(Queue {
            object,
            buffer,
            topic,
            number,
            base,
            room_end,
            end,
            first_log_offset: -1,
        });
        Ok(Some(self.queues.len() - 1))
    }

    /// Writes records, entries and replies, up to the first send for which there is no room.
    fn store(
        &mut self,
        py: Python<'py>,
        sends: &[Send<'a>],
        texts: &[u8],
        common: &Common,
        log: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let base: i64 = log.getattr(intern!(py, "base"))?.extract()?;
        let room_end: i64 = log.getattr(intern!(py, "room_end"))?.extract()?;
        let mut end: i64 = log.getattr(intern!(py, "end"))?.extract()?;
        let buffer: PyBuffer<u8> = PyBuffer::get(&log.getattr(intern!(py, "buffer"))?)?;
        if buffer.readonly() || end < base {
            return Ok(None);
        }
        let file = mutable(&buffer);
        let mut replies = Vec::with_capacity(sends.len() * 320);
        let (mut hashes, mut log_offsets): (Vec<i32>, Vec<i64>) = (Vec::new(), Vec::new());
        let (mut used, mut count) = (0, 0);
        for send in sends {
            let properties = &texts[send.text.clone()];
            let (topic, queue) = (&mut self.topics[send.topic], &mut self.queues[send.queue]);
            let size = record::record_bytes(send.header.topic, properties, send.body, common);
            let place = (end - base) as usize;
            let entry = (queue.end - queue.base) as usize * ENTRY_BYTES;
            let entries = mutable(&queue.buffer);
            if end + size as i64 > room_end
                || queue.end >= queue.room_end
                || place + size > file.len()
                || entry + ENTRY_BYTES > entries.len()
            {
                break;
            }
            let sender_flags = send.header.sys_flag & self.kernel.sender_bits;
            let sys_flag = sender_flags | topic.more_flags | common.host_flags();
            record::write(
                &mut file[place..place + size],
                &send.header,
                sys_flag,
                queue.end,
                end,
                properties,
                send.body,
                common,
            );
            let slot = &mut entries[entry..entry + ENTRY_BYTES];
            record::write_entry(slot, end, size, send.said.tag_code);
            send.said.each_key(properties, |key| {
                let hash = java_hash(topic.hash, key);
                hashes.push(hash.checked_abs().unwrap_or(0));
                log_offsets.push(end);
            });
            if !send.header.is_oneway {
                let unique_key = &properties[send.said.unique_key.clone()];
                self.kernel
                    .reply(&mut replies, &send.header, unique_key, queue.end, end);
            }
            if queue.first_log_offset < 0 {
                queue.first_log_offset = end;
            }
            queue.end += 1;
            topic.count += 1;
            topic.bytes += size;
            end += size as i64;
            used = send.end;
            count += 1;
        }
        if count == 0 {
            return Ok(None);
        }
        log.setattr(intern!(py, "end"), end)?;
        for queue in &self.queues {
            queue.written(py)?;
        }
        let mut topics = Vec::with_capacity(self.topics.len());
        for topic in self.topics.iter().filter(|topic| topic.count > 0) {
            topics.push((&topic.text, topic.count, topic.bytes));
        }
        let replies = PyBytes::new(py, &replies);
        let (hashes, offsets) = (native(&hashes), native(&log_offsets));
        (
            used,
            replies,
            count,
            topics,
            PyBytes::new(py, hashes),
            PyBytes::new(py, offsets),
        )
            .into_pyobject(py)
            .map(Some)
    }
}

impl Queue<'_> {
    /// Tells the queue in Python what was written.
    fn written(&self, py: Python<'_>) -> PyResult<()> {
        if self.first_log_offset < 0 {
            return Ok(());
        }
        self.object.setattr(intern!(py, "max_offset"), self.end)?;
        let unsynced: i64 = self
            .object
            .getattr(intern!(py, "unsynced_log_offset"))?
            .extract()?;
        if unsynced < 0 {
            self.object
                .setattr(intern!(py, "unsynced_log_offset"), self.first_log_offset)?;
        }
        self.object
            .setattr(intern!(py, "is_used"), PyBool::new(py, true))?;
        let arrival = self.object.getattr(intern!(py, "arrival"))?;
        if !arrival.is_none() {
            arrival.call_method1(intern!(py, "rise"), (self.end,))?;
        }
        Ok(())
    }
}

impl SendKernel {
    /// Adds the frame that answers a send.
    fn reply(
        &self,
        out: &mut Vec<u8>,
        header: &Header,
        unique_key: &[u8],
        queue_offset: i64,
        log_offset: i64,
    ) {
        let begin = out.len();
        let [before, queue, offset, key, opaque, after] = &self.reply[..] else {
            unreachable!()
        };
        out.extend_from_slice(&[0; PREFIX_BYTES]);
        out.extend_from_slice(before);
        let digits: [u8; 16] = std::array::from_fn(|place| {
            b"0123456789ABCDEF"[(log_offset >> (60 - 4 * place) & 15) as usize]
        });
        out.extend_from_slice(&digits);
        out.extend_from_slice(queue);
        number(out, header.queue.into());
        out.extend_from_slice(offset);
        number(out, queue_offset);
        out.extend_from_slice(key);
        out.push(b'"');
        out.extend_from_slice(unique_key);
        out.push(b'"');
        out.extend_from_slice(opaque);
        number(out, header.opaque.into());
        out.extend_from_slice(after);
        let length = (out.len() - begin - PREFIX_BYTES) as u32;
        out[begin..begin + 4].copy_from_slice(&(length + LENGTH_BYTES as u32).to_be_bytes());
        out[begin + 4..begin + 8].copy_from_slice(&length.to_be_bytes());
    }
}

/// The frame at a place: its header, its body, and where it ends.
fn frame(data: &[u8], at: usize) -> Option<(Header<'_>, &[u8], usize)> {
    let prefix = data.get(at..at + PREFIX_BYTES)?;
    let length = u32::from_be_bytes(prefix[..4].try_into().ok()?) as usize;
    let header_bytes = u32::from_be_bytes(prefix[4..].try_into().ok()?) as usize;
    let end = at + LENGTH_BYTES + length;
    if header_bytes > HEADER_BYTES_MAX || length < LENGTH_BYTES + header_bytes || end > data.len() {
        return None;
    }
    let body_at = at + PREFIX_BYTES + header_bytes;
    let header = header::read(&data[at + PREFIX_BYTES..body_at])?;
    Some((header, &data[body_at..end], end))
}

/// The bytes of a buffer of Python's that may be written.
#[allow(clippy::mut_from_ref)]
fn mutable(buffer: &PyBuffer<u8>) -> &mut [u8] {
    // The call holds the interpreter, and calls nothing of Python's while it uses the slice; log
    // and queues never share a buffer, and each slice is used by one statement at a time.
    unsafe { std::slice::from_raw_parts_mut(buffer.buf_ptr().cast(), buffer.len_bytes()) }
}

/// Adds the digits of a number.
fn number(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0; 20];
    let (mut at, mut rest) = (digits.len(), value.unsigned_abs());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Numbers as bytes in the machine's order.
fn native<T: Copy>(numbers: &[T]) -> &[u8] {
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), std::mem::size_of_val(numbers)) }
}

#[pymodule]
fn sprocket_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SendKernel>()
}
