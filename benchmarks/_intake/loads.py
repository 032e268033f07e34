"""The readings that are offered to a gateway: their source, their query, and the loads."""

from typing import NamedTuple

import msgspec

from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import Filter
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType
from streamsql.syntax import CreateSource, parse_statement
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

DEVICES = 2_000
DECLARED = """
CREATE SOURCE climate (
  device      TEXT,
  number      INTEGER,
  temperature DOUBLE FROM 'AM2301.Temperature' UNIT 'Cel',
  ts          TIMESTAMP FORMAT 'unix_us',
  KEY (device)
) WITH (connector = 'mqtt', endpoint = 'home', topic = 'tele/{{device}}/SENSOR', qos = '{qos}')
"""
LIMIT = 50.0
WARM = Call(
    ">",
    (Column(2, "temperature", DataType.DOUBLE), Literal(LIMIT, DataType.DOUBLE)),
    DataType.BOOLEAN,
)


def climate(qos: int) -> SourceDefinition:
    """Return the source as its statement declares it."""
    statement = parse_statement(DECLARED.format(qos=qos))
    made = define(statement, Catalog()) if isinstance(statement, CreateSource) else None
    if not isinstance(made, SourceDefinition):
        raise TypeError(f"{statement} declares no source")
    return made


def query(definition: SourceDefinition) -> FragmentBundle:
    """Return the plan of `SELECT * FROM climate WHERE temperature > 50`, at the gateway."""
    plan = Filter(definition.scan(), WARM)
    fragment = Fragment("f0", Engine.GATEWAY, plan, ("gw-1",))
    return FragmentBundle("q1", 1, (fragment,), definition.schema)


class Load(NamedTuple):
    """Readings to offer; a batch of 0 comes over MQTT."""

    rate: int
    seconds: float
    batch: int
    qos: int = 0

    @property
    def name(self) -> str:
        """Title of the figures."""
        way = f"handed in by {self.batch}" if self.batch else f"MQTT, QoS {self.qos}"
        return f"{way}, {self.rate:,}/s"

    @property
    def source(self) -> SourceDefinition:
        """Definition of the readings' source: declared, or of the gateway's own settings."""
        declared = climate(self.qos)
        return (
            msgspec.structs.replace(declared, mapping=None, options=()) if self.batch else declared
        )


FULL: tuple[Load, ...] = (
    Load(50, 20.0, 1),
    Load(1_000, 15.0, 1),
    Load(10_000, 10.0, 100),
    Load(50, 20.0, 0),
    Load(1_000, 15.0, 0),
    Load(6_000, 10.0, 0),
    Load(12_000, 10.0, 0),
    Load(24_000, 8.0, 0),
    Load(50, 20.0, 0, qos=1),
    Load(1_000, 15.0, 0, qos=1),
    Load(12_000, 10.0, 0, qos=1),
)
FIRST = Load(50, 0.5, 1)
QUICK: tuple[Load, ...] = (
    Load(50, 3.0, 1),
    Load(2_000, 3.0, 100),
    Load(50, 3.0, 0),
    Load(2_000, 3.0, 0),
    Load(50, 3.0, 0, qos=1),
)


def offered(load: Load) -> tuple[int, int]:
    """Return how many readings a load has, and how many pass the query."""
    count = int(load.rate * load.seconds)
    return count, sum(1 for number in range(count) if number * 7919 % 100 > LIMIT)
