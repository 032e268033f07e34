"""The metrics of one device: signed values, aliases of its birth, and what it is not asked for."""

from streamsql.mapping.payloads.sparkplug_payload import decode_sparkplug
from streamsql.mapping.sparkplug.device_metrics import DeviceMetrics
from tests.streamsql.mapping.sparkplug.written import alias, level, temp, written


def test_an_alias_keeps_the_data_type_of_its_birth() -> None:
    device = DeviceMetrics(["Level"], 0)
    device.take_birth(decode_sparkplug(written(temp(1.0), level(5))))
    data = decode_sparkplug(written(alias(2, int_value=2**32 - 1)))
    (row,), unknown = device.rows(data, aliases_count=True)
    assert (row.values, unknown) == ({"Level": -1}, None)


def test_a_birth_replaces_all_that_was_known() -> None:
    device = DeviceMetrics(["Temp", "Level"], 0)
    device.take_birth(decode_sparkplug(written(temp(1.0), level(5))))
    row = device.take_birth(decode_sparkplug(written(temp(2.0, alias=7))))
    assert row is not None
    assert row.values == {"Temp": 2.0}
    data = decode_sparkplug(written(alias(1, double_value=3), alias(7, double_value=4)))
    (row,), unknown = device.rows(data, aliases_count=True)
    assert (row.values, unknown) == ({"Temp": 4.0}, 1)


def test_a_device_without_a_wanted_metric_has_no_row_and_no_unknown_alias() -> None:
    device = DeviceMetrics(["Speed"], 0)
    assert device.take_birth(decode_sparkplug(written(temp(1.0)))) is None
    data = decode_sparkplug(written(alias(1, double_value=3)))
    assert device.rows(data, aliases_count=True) == ([], None)


def test_who_reads_no_metric_gets_a_row_of_each_message() -> None:
    device = DeviceMetrics([], 0)
    row = device.take_birth(decode_sparkplug(written(temp(1.0))))
    assert row is not None
    assert not row.is_repeat
    rows, _ = device.rows(decode_sparkplug(written(alias(1))), aliases_count=True)
    assert [each.values for each in rows] == [{}]
