"""Cases as text, so that those that once failed are kept: written by `written`, read by `read`.

# why it failed
CREATE TABLE r0 (i1 INTEGER, KEY (i1))
VIEW CREATE VIEW v0 AS SELECT …
QUERY SELECT …            what StreamSQL and DuckDB write differently stands as «ours¦theirs»
WINDOW w1 SELECT …        what DuckDB reads in place of a window; {now} is the time
BEYOND reason             DuckDB is not asked
AT 1767225600000000
+ r0 [1]
- r0 [1]
"""

import json
import re
from pathlib import Path

from tests.random_queries.queries import Case
from tests.random_queries.schemas import Batch, Change, Relation


def written(case: Case, why: str) -> str:
    """Return a case as a block of lines."""
    lines = [f"# {why}"]
    lines += [relation.text for relation in case.relations]
    lines += [f"VIEW {view}" for view in case.views]
    lines.append(f"QUERY {case.query}")
    lines += [f"WINDOW {name} {text}" for name, text in case.windows]
    lines += [f"BEYOND {reason}" for reason in case.beyond]
    for batch in case.batches:
        lines.append(f"AT {batch.now}")
        for name, row, delete in batch.changes:
            lines.append(f"{'-' if delete else '+'} {name} {json.dumps(row)}")
    return "\n".join(lines) + "\n"


def read(path: Path) -> dict[str, Case]:
    """Return the cases of a file by why they failed."""
    blocks = re.split(r"\n\s*\n", path.read_text(encoding="utf-8").strip())
    cases = (_case(block.splitlines()) for block in blocks)
    return {why: case for why, case in cases if case.batches}


def _case(lines: list[str]) -> tuple[str, Case]:
    why = " ".join(line.removeprefix("# ") for line in lines if line.startswith("#"))
    relations: list[Relation] = []
    views: list[str] = []
    query = ""
    windows: list[tuple[str, str]] = []
    beyond: list[str] = []
    batches: list[tuple[int, list[Change]]] = []
    for line in lines:
        word, _, rest = line.partition(" ")
        match word:
            case "#":
                continue
            case "CREATE":
                relations.append(_relation(line))
            case "VIEW":
                views.append(rest)
            case "QUERY":
                query = rest
            case "WINDOW":
                name, _, text = rest.partition(" ")
                windows.append((name, text))
            case "BEYOND":
                beyond.append(rest)
            case "AT":
                batches.append((int(rest), []))
            case "+" | "-":
                name, _, row = rest.partition(" ")
                batches[-1][1].append((name, tuple(json.loads(row)), word == "-"))
            case _:
                raise ValueError(f"{line!r} is no part of a case")
    happening = tuple(Batch(now, tuple(changes)) for now, changes in batches)
    return why, Case(
        tuple(relations), tuple(views), query, tuple(windows), tuple(beyond), happening
    )


def _relation(text: str) -> Relation:
    found = re.fullmatch(
        r"CREATE (TABLE|SOURCE|LINK SOURCE) (\w+) \((.*?)(?:, KEY \((.*?)\))?"
        r"(?:, WATERMARK FOR ts AS ts - INTERVAL '(\d+) s')?\)(?: WITH \(ttl = '(\d+) s'\))?",
        text,
    )
    if found is None:
        raise ValueError(f"{text!r} is not as `Relation.text` writes it")
    kind, name, columns, key, late, ttl = found.groups()
    listed = tuple((c.split()[0], c.split()[1]) for c in columns.split(", "))
    link = kind == "LINK SOURCE"
    keys = tuple(key.split(", ")) if key else ()
    if link:
        keys = (listed[0][0], listed[1][0])
    lasting, lateness = (int(text) if text else None for text in (ttl, late))
    return Relation(name, listed, kind == "TABLE", keys, lasting, lateness, link)
