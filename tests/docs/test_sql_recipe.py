"""The recipe of the connector sql, on a PostgreSQL server."""

import pytest
import sqlalchemy

from gateway.connectors.sql.sql_connector import SqlConnector
from tests.docs.recipes import as_csv, recipe
from tests.gateway.connectors.serving import in_loop, serving
from tests.static_engine.postgres_server import postgres_server

PLANT = """
CREATE SCHEMA plant;
CREATE TABLE plant.reading (
  id BIGSERIAL PRIMARY KEY, meter VARCHAR(40) NOT NULL, counter NUMERIC(14, 1), taken TIMESTAMP
);
INSERT INTO plant.reading (meter, counter, taken)
VALUES ('main', 1234500, '2026-06-01 12:00'), ('roof', 250.0, '2026-06-01 12:00');
"""


@pytest.mark.postgres
def test_meter_readings_in_a_database() -> None:
    told = recipe("Meter readings in a database")

    @in_loop
    async def scenario() -> None:
        async with serving(SqlConnector(), {**told.endpoint, "url": url}, told.statement) as served:
            await served.until_rows(2)
        assert as_csv(reading.values for reading in served.readings) == told.rows
        assert served.problems == []

    with postgres_server("recipe") as url:
        engine = sqlalchemy.create_engine(url)
        with engine.begin() as connection:
            connection.exec_driver_sql(PLANT)
        engine.dispose()
        scenario()
