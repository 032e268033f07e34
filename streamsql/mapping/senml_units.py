"""Units that SenML packs may name, and how values of others are converted to them."""

from fractions import Fraction

import msgspec

from streamsql.mapping.units import unit_conversion, unit_named

_PRIMARY = (
    "m kg s A K cd mol Hz rad sr N Pa J W C V F Ohm S Wb T H Cel lm lx Bq Gy Sv kat m2 m3 m/s m/s2 "
    "m3/s W/m2 cd/m2 bit bit/s lat lon pH dB dBW Bspl count / %RH %EL EL 1/s S/m B VA VAs var vars "
    "J/m kg/m3 deg NTU"
)
PRIMARY_UNITS = frozenset(_PRIMARY.split())
"""Units of RFC 8428 and RFC 8798 that every reader of SenML knows; no deprecated ones."""

_SECONDARY = (
    "ms min h MHz kW kVA kvar Ah Wh kWh varh kvarh kVAh Wh/km KiB GB Mbit/s B/s MB/s mV mA dBm "
    "ug/m3 mm/h m/h ppm /100 /1000 hPa mm cm km km/h"
)
SECONDARY_UNITS = frozenset(_SECONDARY.split())
"""Secondary units of RFC 8798."""


class SenmlUnit(msgspec.Struct, frozen=True):
    """A unit of SenML: its value = given value * slope + shift."""

    name: str
    slope: Fraction
    shift: Fraction

    def convert(self, value: float) -> float:
        """Return a value in this unit."""
        if self.slope == 1 and self.shift == 0:
            return value
        return float(Fraction(value) * self.slope + self.shift)


def senml_unit(unit: str) -> SenmlUnit | None:
    """Return a unit as SenML names it; None: there is none, and the value is only a number.

    Examples:
        >>> senml_unit("Cel").name, senml_unit("degF").name, senml_unit("degF").convert(32.0)
        ('Cel', 'K', 273.15)
        >>> senml_unit("") is None, senml_unit("UVI") is None
        (True, True)
    """
    if not unit:
        return None
    known = unit_named(unit)
    for name in (known.name, known.primary):
        if name in PRIMARY_UNITS or name in SECONDARY_UNITS:
            slope, shift = unit_conversion(known.name, name)
            return SenmlUnit(name, slope, shift)
    return None
