"""The sample queries of CQL, as relations and as streams, at every instant as by definition."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploy.session import LocalSession

SETUP = """
CREATE SOURCE S (A INTEGER, B INTEGER, C INTEGER, ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '2 s');
CREATE SOURCE S1 (A INTEGER, B INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2 s');
CREATE SOURCE S2 (B INTEGER, C INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2 s');
CREATE SOURCE S3 (C INTEGER, D INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2 s');
CREATE SOURCE CarStr (cid INTEGER, sid INTEGER, xpos INTEGER, ts TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL '2 s');
"""
WIDTHS = {"S": 3, "S1": 2, "S2": 2, "S3": 2, "CarStr": 3}
QUERIES = (
    "Select * From S [Rows Unbounded] Where S.A > 1 and S.B < 2 and S.C > 0",
    "Select * From S Where S.A > 1 and S.B < 2 and S.C > 0",
    "Select * From S1 [Rows 1000], S2 [Range 2 Minutes] "
    "Where S1.A = S2.B and S1.A > 1 and S1.B < 2",
    "Select A, Max(B) From S1 [Rows 3] Group By A",
    "Select * From S "
    "Where S.A in (Select B From S1 [Rows 4]) and S.B in (Select C From S2 [Rows 2])",
    "Select * From S1 [Range 3 Seconds], S2 [Rows 2], S3 [Now] Where S1.B = S2.B and S2.C = S3.C",
    "Select * From S1 [Rows Unbounded], S2 [Rows Unbounded], S3 [Rows 1] "
    "Where S1.B = S2.B and S2.C = S3.C and S3.D > 0",
    """Select distinct sid
    From (Select LastRep.cid, sid
          From CarStr [Partition By cid Rows 1] as LastRep,
               (Select distinct cid From CarStr [Range 3 seconds]) as CurActiveCars
          Where LastRep.cid = CurActiveCars.cid) as CurCarSeg,
         (Select cid From CarStr [Partition By cid Rows 2]
          Group By cid Having count(distinct xpos) = 1 and count(*) = 2) as AccCars
    Where CurCarSeg.cid = AccCars.cid""",
)
KINDS = ("{}", "Istream({})", "Dstream({})", "Rstream({})")
Reading = tuple[str, list[int], int]
READINGS = st.lists(
    st.tuples(
        st.sampled_from(sorted(WIDTHS)),
        st.lists(st.integers(0, 3), min_size=3, max_size=3),
        st.integers(-3, 3),
    ),
    max_size=14,
)


def script(readings: list[Reading]) -> str:
    statements = [SETUP]
    for number, (source, values, offset) in enumerate(readings):
        second = max(number + offset, 0)
        row = ", ".join(map(str, values[: WIDTHS[source]]))
        statements.append(f"INSERT INTO {source} VALUES ({row}, '2026-01-01T00:00:{second:02}Z');")
    for source, width in WIDTHS.items():
        row = ", ".join(["9"] * width)
        statements.append(f"INSERT INTO {source} VALUES ({row}, '2026-01-01T00:00:40Z');")
    return "\n".join(statements)


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
@settings(max_examples=6, deadline=None)
@given(readings=READINGS, kind=st.sampled_from(("{}", "Istream({})", "Dstream({})", "Rstream({})")))
def test_the_engines_agree(
    query: str, readings: list[tuple[str, list[int], int]], kind: str
) -> None:
    answers = []
    for engine, sites in (("reference", 1), ("stream", 1), ("stream", 3)):
        with contextlib.closing(LocalSession(engine, sites)) as session:
            session.run(script(readings))
            (result,) = session.run(kind.format(query))
            answers.append(sorted(result.rows))
    assert answers[0] == answers[1] == answers[2]


def test_the_long_and_the_short_form_of_a_filter_agree() -> None:
    with contextlib.closing(LocalSession("stream")) as session:
        session.run(script([("S", [2, 1, 1], 0), ("S", [3, 0, 2], 0), ("S", [0, 0, 0], 0)]))
        ((short,), (long,)) = (
            session.run(text)
            for text in (
                "Select A, B From S Where S.A > 1",
                "Select Istream(A, B) From S [Rows Unbounded] Where S.A > 1",
            )
        )
        final = [row for row in short.rows if row != (9, 9)]  # its instant is not over
        assert [row[:2] for row in long.rows] == final
