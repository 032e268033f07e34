"""Tables tell where a configuration stopped to run, and where it was planned on."""

from benchmarks._published.argus_tables import argus_claims, argus_ends, argus_sizes, argus_updates

SIZES = {"weighted": 40, "nodes": 9, "operators": 20, "fragments": 6, "runs": 3}
TIMES = {
    **dict.fromkeys(("update_ms_median", "update_ms_mean", "update_ms_max"), 2.5),
    **dict.fromkeys(("gateway_ms", "base_ms"), 1.0),
    "messages": 4.0,
    "bytes": 1_234,
    "mb": 7.0,
    "registrations_a_second": 20.0,
    **dict.fromkeys(("registration_ms_p50", "registration_ms_p99"), 50.0),
}
PLANNED = {**SIZES, "weighted": 80, "plan_ms_median": 3.0}
RAN = {**SIZES, **TIMES, "plan_ms_median": 3.0}
FOUND = {
    "sets": {
        "fed": {
            "title": "FED",
            "queries": 200,
            "history": 6_000,
            "batch": 80,
            "rounds": [
                {"queries": 100, "configurations": {"off": RAN, "all": RAN}},
                {"queries": 200, "configurations": {"off": PLANNED, "all": RAN}},
            ],
        }
    },
    "claims": [
        {
            "words": "a",
            "thesis": "2",
            "ours": "3.00 (200 queries)",
            "held": True,
            "product": "1.50 (200 queries)",
        },
        {"words": "b", "thesis": "", "ours": "1.00 (200 queries)", "held": False},
        {"words": "c", "thesis": "2", "ours": "1.00 (100 queries)", "held": None},
    ],
}


def test_a_size_without_rows_has_no_times() -> None:
    assert "| 200 | 80 | 40 |" in argus_sizes(FOUND)
    assert "| 200 | - | 2.5 |" in argus_updates(FOUND)


def test_the_last_round_is_the_last_one_that_ran() -> None:
    lines = argus_ends(FOUND).splitlines()
    assert lines[-2].startswith("| FED | off | 100 |")
    assert lines[-1].startswith("| FED | all | 200 |")
    assert "1,234" in lines[-1]


def test_each_claim_is_held_or_refuted_or_not_judged() -> None:
    cells = [line.split("|") for line in argus_claims(FOUND).splitlines()[2:]]
    assert [each[-3].strip() for each in cells] == ["held", "**refuted**", "not judged"]
    assert [each[-2].strip() for each in cells] == ["1.50 (200 queries)", "-", "-"]
