"""The columns made of addresses: hosts as texts, and the broker's ids. Pure.

A store has few hosts, so each is made a text once, and an id is its host's hex digits and those of
the log offset.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sprocket.message.hosts import V4_BYTES, unpack
from sprocket.message.record import BORN_HOST_AT, LOG_OFFSET_AT
from sprocket.spark.records.heads import Places
from sprocket.spark.records.layout import Layout
from sprocket.spark.records.slices import of_one_size, slices

_HEX = np.array([b"%02X" % byte for byte in range(256)])


def born_hosts(places: Layout) -> pa.Array:
    """`ip:port` of each sender."""
    return _texts(_packed(places, places.starts + BORN_HOST_AT, places.born_more))


def store_hosts(places: Layout) -> pa.Array:
    """`ip:port` of each record's broker."""
    return _texts(_packed(places, places.store_host_at, places.store_more))


def offset_ids(places: Layout) -> pa.Array:
    """The broker's id of each record, as `sprocket.message.ids.offset_id` makes one."""
    hosts = _packed(places, places.store_host_at, places.store_more)
    digits = pa.array([host.hex().upper() for host in hosts.dictionary.to_pylist()], pa.string())
    offsets: NDArray[np.uint8] = places.of(LOG_OFFSET_AT, "i8").astype(">i8").view(np.uint8)
    log_digits = of_one_size(_HEX[offsets].view("V16"), pa.string())
    return pc.binary_join_element_wise(digits.take(hosts.indices), log_digits, "")


def _packed(places: Layout, at: Places, more: Places) -> pa.DictionaryArray:
    return slices(places.buffer, at, at + V4_BYTES + more).dictionary_encode()


def _texts(hosts: pa.DictionaryArray) -> pa.Array:
    texts = [unpack(host) for host in hosts.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(hosts.indices)
