from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.message.hosts import unpack
from sprocket.message.ids import offset_id
from sprocket.message.record import parse
from sprocket.spark.records.hosts import born_hosts, offset_ids, store_hosts
from sprocket.spark.records.layout import lay_out
from tests.spark.support import V4, V6, record

hosts = st.sampled_from([V4, V6, bytes([10, 0, 0, 7, 0, 0, 0x2A, 0x9F])])


@given(st.lists(st.builds(record, st.integers(0, 2**40), born_host=hosts, store_host=hosts)))
def test_hosts_and_ids_are_those_that_reading_one_record_gives(records: list[bytes]) -> None:
    places = lay_out(b"".join(records))
    parsed = [parse(one, 0) for one in records]
    assert born_hosts(places).to_pylist() == [unpack(one.born_host) for one in parsed]
    assert store_hosts(places).to_pylist() == [unpack(one.store_host) for one in parsed]
    ids = offset_ids(places)
    ids.validate(full=True)
    wanted = [offset_id(bytes(one.store_host), one.log_offset) for one in parsed]
    assert ids.to_pylist() == wanted
