"""RDF models (Turtle, N-Triples, RDF/XML), such as Brick models of buildings.

The option `layer` says what a row is:

| layer | columns |
|---|---|
| `entities` | `entity`, `class`, `kind` (room, floor, point, …), `label`, `iri` |
| `relations` | `subject`, `predicate`, `object`: between entities, each pair in one direction |
| `values` | `entity`, `property`, `value`, `datatype`: texts and numbers |
| `triples` | `subject`, `predicate`, `object`: everything, with whole names |

A name is the last part of an IRI. An entity of several classes has a row for each.
Nothing outside the file is read.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from rdflib import RDF, RDFS, BNode, Graph, Literal, URIRef
from rdflib.term import Node

from static_engine.sources.documents.brick_terms import INVERSES, kind_of
from static_engine.sources.documents.offered_rows import batches_of, content_of, where_of
from static_engine.sources.table_errors import TableError
from streamsql.catalog.definitions import SourceDefinition

LAYERS = {
    "entities": ("entity", "class", "kind", "label", "iri"),
    "relations": ("subject", "predicate", "object"),
    "values": ("entity", "property", "value", "datatype"),
    "triples": ("subject", "predicate", "object"),
}
FORMATS = {".ttl": "turtle", ".nt": "nt", ".n3": "turtle", ".rdf": "xml", ".xml": "xml"}
MAX_BYTES = 16 << 20
MAX_TRIPLES = 500_000
_BRICK = re.compile(
    r"^https?://brickschema\.org/schema/(?:[\d.]+/)?Brick(?:Frame)?#", re.IGNORECASE
)
_DOCUMENT_TYPE = re.compile(rb"<!\s*(DOCTYPE|ENTITY)", re.IGNORECASE)

Row = dict[str, object]


def read_rdf(
    definition: SourceDefinition, files: tuple[Path, ...], layer: str
) -> Iterator[pa.RecordBatch]:
    """Yield a layer of a model in the declared types; several files are one model.

    Raises:
        TableError: A file is not RDF or too large, or a declared column is not of the layer.
    """
    graph = Graph()
    for file in files:
        _parse(
            graph, content_of(definition, file, MAX_BYTES), file, where_of(definition, file.name)
        )
        if len(graph) > MAX_TRIPLES:
            raise TableError(f"table {definition.name} has more than {MAX_TRIPLES} triples")
    rows = {
        "entities": _entities,
        "relations": _relations,
        "values": _values,
        "triples": _triples,
    }[layer](graph)
    unique = {tuple(row.values()): row for row in rows}
    ordered = [unique[key] for key in sorted(unique, key=str)]  # a graph has no order of its own
    yield from batches_of(definition, ordered, LAYERS[layer], files[0].name)


def _parse(graph: Graph, content: bytes, file: Path, where: str) -> None:
    kind = FORMATS.get(file.suffix.lower())
    if kind is None:
        raise TableError(
            f"{where} is of no kind that is read as RDF", hint=f"known: {', '.join(FORMATS)}"
        )
    if kind == "xml" and _DOCUMENT_TYPE.search(content.replace(b"\0", b"")):
        # Entities may grow a small file to gigabytes, or name other files.
        raise TableError(
            f"{where} declares a document type, which is not read", hint="save it as Turtle (.ttl)"
        )
    try:
        graph.parse(data=content, format=kind, publicID="urn:pando:table")
    except RecursionError:
        raise TableError(f"{where} nests too deeply") from None
    except Exception as error:  # noqa: BLE001 - rdflib's parsers raise what their parts raise
        what = " ".join(str(error).split())
        raise TableError(
            f"{where} is not RDF ({kind}): {type(error).__name__}: {what:.300}"
        ) from None


def _entities(graph: Graph) -> Iterator[Row]:
    labels = {subject: str(label) for subject, label in graph.subject_objects(RDFS.label)}
    for subject, found in graph.subject_objects(RDF.type):
        is_brick = bool(_BRICK.match(str(found)))
        yield {
            "entity": _name(subject),
            "class": _name(found),
            "kind": kind_of(_name(found)) if is_brick else None,
            "label": labels.get(subject),
            "iri": str(subject),
        }


def _relations(graph: Graph) -> Iterator[Row]:
    for subject, predicate, found in graph:
        if predicate == RDF.type or isinstance(found, Literal):
            continue
        name, source, target = _name(predicate), _name(subject), _name(found)
        if name in INVERSES and _BRICK.match(str(predicate)):
            name, source, target = INVERSES[name], target, source
        yield {"subject": source, "predicate": name, "object": target}


def _values(graph: Graph) -> Iterator[Row]:
    for subject, predicate, found in graph:
        if isinstance(found, Literal):
            yield {
                "entity": _name(subject),
                "property": _name(predicate),
                "value": str(found),
                "datatype": _name(found.datatype) if found.datatype is not None else None,
            }


def _triples(graph: Graph) -> Iterable[Row]:
    for subject, predicate, found in graph:
        yield {"subject": str(subject), "predicate": str(predicate), "object": str(found)}


def _name(node: Node) -> str:
    """Return the last part of an IRI, or the name of a node without one."""
    text = str(node)
    if isinstance(node, BNode):
        return f"_:{text}"
    if not isinstance(node, URIRef):
        return text
    return re.split(r"[#/:]", text.rstrip("#/"))[-1] or text
