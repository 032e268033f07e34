"""Objects of a BACnet device that have a present value, as offers."""

from gateway.connectors.bacnet.bacnet_options import BacnetBrowse
from gateway.connectors.bacnet.device import Device, RefusedError, parse_property
from gateway.connectors.browsing import BrowseContext
from streamsql.data.types import DataType
from streamsql.mapping.offers import MAX_RECORD_VALUES, OfferedRecord, OfferedValue, sample_of

MAX_OBJECTS = 500
_TYPES = {
    "analog-input": DataType.DOUBLE,
    "analog-output": DataType.DOUBLE,
    "analog-value": DataType.DOUBLE,
    "large-analog-value": DataType.DOUBLE,
    "binary-input": DataType.BOOLEAN,
    "binary-output": DataType.BOOLEAN,
    "binary-value": DataType.BOOLEAN,
    "multi-state-input": DataType.INTEGER,
    "multi-state-output": DataType.INTEGER,
    "multi-state-value": DataType.INTEGER,
    "integer-value": DataType.INTEGER,
    "positive-integer-value": DataType.INTEGER,
    "accumulator": DataType.INTEGER,
    "character-string-value": DataType.TEXT,
}
"""Of objects whose present value is one value of a column."""
_UNITS = {
    "degrees-celsius": "Cel", "degrees-fahrenheit": "degF", "degrees-kelvin": "K",
    "percent": "%", "percent-relative-humidity": "%RH", "watts": "W", "kilowatts": "kW",
    "watt-hours": "Wh", "kilowatt-hours": "kWh", "joules": "J", "kilojoules": "kJ", "volts": "V",
    "millivolts": "mV", "amperes": "A", "milliamperes": "mA", "volt-amperes": "VA",
    "volt-amperes-reactive": "var", "pascals": "Pa", "hectopascals": "hPa", "kilopascals": "kPa",
    "bars": "bar", "hertz": "Hz", "parts-per-million": "ppm", "luxes": "lx",
    "liters-per-second": "l/s", "cubic-meters-per-hour": "m3/h", "cubic-meters": "m3",
    "liters": "l", "seconds": "s", "minutes": "min", "hours": "h", "meters-per-second": "m/s",
    "revolutions-per-minute": "rpm", "degrees-angular": "deg",
}  # fmt: skip


async def offer_objects(device: Device, context: BrowseContext) -> None:
    """Offer the objects of the device with their names, values and units.

    Raises:
        ConnectionError: The device does not answer.
        RefusedError: It does not tell its objects.
    """
    instance = context.options_as(BacnetBrowse).device
    me = f"device:{await device.instance() if instance is None else instance}"
    name = str(await _read(device, f"{me} object-name") or me)
    offered: list[OfferedValue] = []
    looked = 0
    async for text in device.object_list(me):
        if text.partition(":")[0] not in _TYPES:
            continue
        looked += 1
        if looked > MAX_OBJECTS:
            context.note(f"the device has more than {MAX_OBJECTS} objects; the rest is left out")
            break
        offered.append(await _offered(device, text))
        if len(offered) == MAX_RECORD_VALUES:
            context.offer(OfferedRecord(name, tuple(offered)))
            offered = []
    if offered:
        context.offer(OfferedRecord(name, tuple(offered)))


async def _offered(device: Device, text: str) -> OfferedValue:
    kind = text.partition(":")[0]
    dtype = _TYPES[kind]
    unit = ""
    if dtype == DataType.DOUBLE:
        said = str(await _read(device, f"{text} units") or "")
        unit = _UNITS.get(said, "")
    name = await _read(device, f"{text} object-name")
    sample = await _read(device, text)
    return OfferedValue(str(name or text), text, dtype, unit, sample_of(sample))


async def _read(device: Device, text: str) -> object:
    """Return a property, or None where the device refuses to tell it."""
    try:
        return await device.read(parse_property(text))
    except RefusedError:
        return None
