"""Read a K7 radio link trace: its nodes and who heard whom.

A K7 file is text, gzipped or not: a JSON header on the first line, then CSV with the columns
`datetime,src,dst,channel,mean_rssi,pdr,tx_count`. It says nothing of where the nodes are, so
they are laid out by the quality of their links.
"""

import csv
import gzip
import json
import math
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, TextIO

import networkx as nx

from building.furnishing.gateway_areas import assign_gateways
from building.model.site_model import ID_PATTERN, Level, Mote, RadioLink, Site, SiteError

COLUMNS: Final = ("datetime", "src", "dst", "channel", "mean_rssi", "pdr", "tx_count")
MAX_HEADER: Final = 100_000
MAX_LINE: Final = 1_000
MAX_LINES: Final = 5_000_000
MAX_NODES: Final = 2_000

EXTENT: Final = 60.0
"""Metres on a side of the square the nodes are laid out in."""

LAYOUT_SEED: Final = 7
FORCE_LAYOUT_BOUND: Final = 400
"""Nodes; the layout's work grows with their square, so more are put on a circle."""


@dataclass(frozen=True, slots=True)
class _Trace:
    """Node ids in order of first appearance, and the sum and count of pdr per link."""

    name: str
    nodes: tuple[str, ...]
    quality: dict[tuple[str, str], tuple[float, int]]


def read_k7(path: Path, *, gateways: int = 3) -> Site:
    """Return the trace's nodes as a site without rooms, its nodes divided among gateways.

    Nodes keep their names, so that rows of the trace join them. Each gateway owns nodes that
    are neighbours in the layout.

    Raises:
        SiteError: The file cannot be read or a line is malformed; the message names the line.
    """
    trace = _read(path)
    mean = {ends: total / count for ends, (total, count) in trace.quality.items()}
    places = _layout(trace.nodes, mean)
    motes = tuple(Mote(node, None, *places[node], level=0) for node in trace.nodes)
    radio = tuple(
        RadioLink(a, b, round(math.dist(places[a], places[b]), 3))
        for a, b in sorted({(min(ends), max(ends)) for ends, pdr in mean.items() if pdr > 0})
    )
    levels = (Level(0, "Testbed"),)
    site = Site(name=trace.name, origin=None, levels=levels, motes=motes, radio=radio)
    return assign_gateways(site, gateways)


def _read(path: Path) -> _Trace:
    try:
        with _opened(path) as lines:
            return _parsed(path.name, lines)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SiteError(f"{path.name}: broken gzip data: {error}") from error
    except UnicodeDecodeError as error:
        raise SiteError(f"{path.name}: not UTF-8 text: {error.reason}") from error
    except OSError as error:
        raise SiteError(f"cannot read {path}: {error.strerror or error}") from error


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    with path.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
    if is_gzip:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as text:
            yield text
    else:
        with path.open(encoding="utf-8", newline="") as text:
            yield text


def _parsed(source: str, text: TextIO) -> _Trace:
    header = _header(source, text.readline(MAX_HEADER))
    columns = text.readline(MAX_LINE).strip()
    if tuple(columns.split(",")) != COLUMNS:
        raise SiteError(
            f"{source}, line 2: expected the columns {','.join(COLUMNS)}, found {columns[:80]!r}"
        )
    nodes: dict[str, None] = {}
    quality: dict[tuple[str, str], tuple[float, int]] = {}
    for number, row in _rows(source, text):
        if not row:
            continue
        src, dst, pdr = _measurement(f"{source}, line {number}", row)
        nodes.update(dict.fromkeys((src, dst)))
        if len(nodes) > MAX_NODES:
            raise SiteError(f"{source}, line {number}: more than {MAX_NODES} nodes")
        total, count = quality.get((src, dst), (0.0, 0))
        quality[src, dst] = (total + pdr, count + 1)
    if not nodes:
        raise SiteError(f"{source}: the trace has no measurements after its header")
    _check_node_count(source, header, len(nodes))
    name = header.get("location")
    return _Trace(str(name)[:80] if name else source, tuple(sorted(nodes, key=_order)), quality)


def _rows(source: str, text: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with the number of the line that each ends with.

    Raises:
        SiteError: A row is no CSV.
    """
    rows = csv.reader(_bounded(source, text))
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise SiteError(f"{source}, line {rows.line_num + 2}: not CSV: {error}") from error
        if row is None:
            return
        yield rows.line_num + 2, row


def _bounded(source: str, text: TextIO) -> Iterator[str]:
    number = 2
    while line := text.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise SiteError(f"{source}, line {number}: longer than {MAX_LINE} characters")
        if number > MAX_LINES:
            raise SiteError(f"{source}: more than {MAX_LINES} lines")
        yield line


def _header(source: str, line: str) -> dict[str, object]:
    try:
        header: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SiteError(
            f"{source}, line 1: the header must be a JSON object",
            hint='a K7 trace starts with a line such as {"location": "...", "node_count": 44}',
        ) from error
    if not isinstance(header, dict):
        raise SiteError(f"{source}, line 1: the header must be a JSON object")
    return header


def _check_node_count(source: str, header: dict[str, object], found: int) -> None:
    stated = header.get("node_count")
    if isinstance(stated, int) and not isinstance(stated, bool) and stated < found:
        raise SiteError(
            f"{source}, line 1: node_count says {stated}, but the lines name {found} nodes"
        )


def _measurement(place: str, row: list[str]) -> tuple[str, str, float]:
    if len(row) != len(COLUMNS):
        raise SiteError(f"{place}: {len(row)} columns, expected {len(COLUMNS)}")
    fields = dict(zip(COLUMNS, row, strict=True))
    for column in ("src", "dst"):
        if not ID_PATTERN.fullmatch(fields[column]):
            raise SiteError(
                f"{place}: {column} {fields[column][:70]!r} is not a node name",
                hint="names have 1 to 64 letters, digits, '_' or '-'",
            )
    try:
        datetime.fromisoformat(fields["datetime"])
    except ValueError as error:
        shown = fields["datetime"][:40]
        raise SiteError(f"{place}: datetime {shown!r} is not a date and time") from error
    return fields["src"], fields["dst"], _ratio(place, fields["pdr"])


def _ratio(place: str, text: str) -> float:
    try:
        pdr = float(text)
    except ValueError as error:
        raise SiteError(f"{place}: pdr {text[:40]!r} is not a number") from error
    # Written so that NaN fails.
    if not 0 <= pdr <= 1:
        raise SiteError(f"{place}: pdr {text[:40]} is not within 0..1")
    return pdr


def _order(node: str) -> tuple[int, str]:
    return (int(node) if node.isdecimal() and len(node) < 10 else 10**10, node)


def _layout(
    nodes: Iterable[str], mean: dict[tuple[str, str], float]
) -> dict[str, tuple[float, float]]:
    """Return places in metres: good links are short; the same trace gives the same places."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(nodes)
    for (src, dst), pdr in sorted(mean.items()):
        if pdr > 0 and src != dst:
            known = graph.get_edge_data(src, dst, {"weight": 0.0})["weight"]
            graph.add_edge(src, dst, weight=max(known, pdr))
    if len(graph) <= FORCE_LAYOUT_BOUND:
        places = nx.spring_layout(graph, seed=LAYOUT_SEED, iterations=200, method="force")
    else:
        places = nx.circular_layout(graph)
    half = EXTENT / 2
    return {
        node: (round(half + half * float(x), 2), round(half + half * float(y), 2))
        for node, (x, y) in places.items()
    }
