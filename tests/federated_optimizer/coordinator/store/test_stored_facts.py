"""Facts in the catalog's database; on PostgreSQL with everything else (`test_catalog_store`)."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.schema import catalog_schema
from federated_optimizer.coordinator.store.stored_facts import store_facts, stored_facts
from federated_optimizer.statistics.fact import Origin, Quantity, Subject, SubjectKind, exact

ROWS = exact(Subject(SubjectKind.TABLE, "big"), Quantity.ROWS, 7.0, 1, Origin.TABLES)


def test_a_catalog_of_before_gets_the_table(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    CatalogStore(url).close()
    before = catalog_schema.MIGRATIONS.index(catalog_schema._add_facts)
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        catalog_schema.facts.drop(connection)
        connection.execute(catalog_schema.schema_version.update().values(version=before))
    engine.dispose()
    store = CatalogStore(url)
    store.claim(now=0)
    assert stored_facts(store) == ()
    store_facts(store, {ROWS.key: ROWS})
    assert stored_facts(store) == (ROWS,)
    store.close()


def test_one_that_cannot_be_read_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = CatalogStore(f"sqlite:///{tmp_path}/catalog.db")
    store.claim(now=0)
    store_facts(store, {ROWS.key: ROWS})
    with store.writing() as connection:
        connection.execute(catalog_schema.facts.insert().values(id="x", body=b'{"subject": 7}'))
    assert stored_facts(store) == (ROWS,)
    assert "a fact in the catalog is left out" in caplog.text
    store.close()
