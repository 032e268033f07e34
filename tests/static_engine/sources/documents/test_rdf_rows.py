"""RDF and Brick models as rows, the library's views over them, and models that are hostile."""

import re
import shutil
from pathlib import Path

import pytest

from deploy.session.session import LocalSession
from static_engine.sources.documents import rdf_rows
from tests.static_engine.sources.documents.document_tables import refused, rows

MODEL = """
@prefix brick: <https://brickschema.org/schema/Brick#> .
@prefix b: <urn:building:> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
b:f1 a brick:Floor ; rdfs:label "First floor" ; brick:hasPart b:r1 .
b:r1 a brick:Conference_Room ; brick:area 31.5 .
b:r2 a brick:Room ; brick:isPartOf b:f1 .
b:r3 a brick:Room .
b:vav a brick:VAV ; brick:feeds b:zone ; brick:hasPoint b:t1 .
b:zone a brick:HVAC_Zone ; brick:hasPart b:r1 .
b:t1 a brick:Zone_Air_Temperature_Sensor ; brick:isPointOf b:vav .
b:t2 a brick:Occupancy_Sensor ; brick:isPointOf b:r2 .
"""


def layer(folder: Path, name: str, columns: str) -> list[tuple[object, ...]]:
    return list(rows(folder, columns, source="rdf", path="m.ttl", layer=name))


def test_layers_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "m.ttl").write_text(MODEL)
    entities = layer(tmp_path, "entities", "entity TEXT, class TEXT, kind TEXT, label TEXT")
    assert ("f1", "Floor", "floor", "First floor") in entities
    assert ("t1", "Zone_Air_Temperature_Sensor", "point", None) in entities
    assert len(entities) == 8
    assert layer(tmp_path, "relations", "subject TEXT, predicate TEXT, object TEXT") == [
        ("f1", "hasPart", "r1"), ("f1", "hasPart", "r2"), ("r2", "hasPoint", "t2"),
        ("vav", "feeds", "zone"), ("vav", "hasPoint", "t1"), ("zone", "hasPart", "r1"),
    ]  # fmt: skip
    values = layer(tmp_path, "values", "entity TEXT, property TEXT, value TEXT, datatype TEXT")
    assert ("r1", "area", "31.5", "decimal") in values
    triples = layer(tmp_path, "triples", "subject TEXT, predicate TEXT, object TEXT")
    assert ("urn:building:t2", "https://brickschema.org/schema/Brick#isPointOf",
            "urn:building:r2") in triples  # fmt: skip


def views(model: Path, monkeypatch: pytest.MonkeyPatch) -> LocalSession:
    monkeypatch.chdir(model.parent)
    session = LocalSession()
    session.run(
        "CREATE TABLE brick_entities (entity TEXT, class TEXT, kind TEXT) "
        f"WITH (source = 'rdf', path = '{model.name}', layer = 'entities');"
        "CREATE TABLE brick_relations (subject TEXT, predicate TEXT, object TEXT) "
        f"WITH (source = 'rdf', path = '{model.name}', layer = 'relations')"
    )
    return session


def answer(session: LocalSession, query: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in session.run(query)[-1].rows), key=str)


def test_views_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.ttl").write_text(MODEL)
    session = views(tmp_path / "m.ttl", monkeypatch)
    assert answer(session, "SELECT * FROM brick_rooms") == [
        ("r1", "Conference_Room", "f1"), ("r2", "Room", "f1"), ("r3", "Room", None),
    ]  # fmt: skip
    assert answer(session, "SELECT * FROM brick_floors") == [("f1", 2)]
    assert answer(session, "SELECT * FROM brick_points") == [
        ("t1", "Zone_Air_Temperature_Sensor", "vav", "VAV"),
        ("t2", "Occupancy_Sensor", "r2", "Room"),
    ]
    assert answer(session, "SELECT * FROM brick_equipment") == [("vav", "VAV", "zone", "HVAC_Zone")]


SAMPLES = Path(__file__).parents[5] / "shared" / "data" / "brick"


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample models are not there")
def test_views_of_soda_hall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of `grep`, not of an RDF library."""
    shutil.copyfile(SAMPLES / "soda_brick.ttl", tmp_path / "m.ttl")
    text = (tmp_path / "m.ttl").read_text()
    session = views(tmp_path / "m.ttl", monkeypatch)
    for view, column, name in (
        ("brick_rooms", "room", "Room"),
        ("brick_floors", "floor", "Floor"),
    ):
        written = len(re.findall(rf" a brick:{name}\b", text))
        counted = answer(session, f"SELECT COUNT(DISTINCT {column}) FROM {view}")
        assert counted == [(written,)]
        assert written > 6
    sensors = len(re.findall(r" a brick:\w+_Sensor\b", text))
    ((found,),) = answer(
        session, "SELECT COUNT(DISTINCT point) FROM brick_points WHERE class LIKE '%_Sensor'"
    )
    assert found == sensors


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">&b;</rdf:RDF>'
)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("m.rdf", BOMB.encode(), "declares a document type"),
        ("m.rdf", BOMB.encode("utf-16"), "declares a document type"),
        ("m.rdf", b"<rdf:RDF", "is not RDF"),
        ("m.ttl", b"this is : not turtle", "is not RDF"),
        ("m.ttl", b"\xff\xfe\x00", "is not RDF"),
        ("m.ttl", b"<a:a> <a:b> " + b"[ <a:c> " * 20_000, "(nests too deeply|is not RDF)"),
        ("m.nt", b"<urn:a> <urn:b> .", "is not RDF"),
        ("m.csv", b"a,b", "of no kind that is read as RDF"),
        ("m.jsonld", b'{"@context": "http://127.0.0.1:9/x"}', "of no kind"),
    ],
)
def test_a_hostile_model_is_an_error(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    text = refused(tmp_path, "subject TEXT", source="rdf", path=name, layer="triples")
    assert re.search(said, text)


def test_bounds_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.ttl").write_text(MODEL)
    options = {"source": "rdf", "path": "m.ttl", "layer": "triples"}
    monkeypatch.setattr(rdf_rows, "MAX_TRIPLES", 3)
    assert "more than 3 triples" in refused(tmp_path, "subject TEXT", **options)
    monkeypatch.setattr(rdf_rows, "MAX_BYTES", 10)
    assert "is larger than" in refused(tmp_path, "subject TEXT", **options)
