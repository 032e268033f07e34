"""Which runs read others, and which of them have to be looked at."""

from federated_optimizer.coordinator.queries.runs.fed_runs import FedRuns
from streamsql.wire.fragments import Feed


def feeds(*runs: str, source: str = "f1") -> list[Feed]:
    return [Feed(f"f{at}", run, 1, source) for at, run in enumerate(runs, 2)]


def test_both_directions_are_known() -> None:
    fed = FedRuns()
    fed.put("q2", feeds("q1"))
    fed.put("q3", feeds("q1", "q2"))
    assert set(fed.readers("q1")) == {"q2", "q3"}
    assert set(fed.feeders("q3")) == {"q1", "q2"}
    assert fed.resting_on("q2") == {"q2", "q3"}
    fed.put("q3", feeds("q2"))
    assert set(fed.readers("q1")) == {"q2"}
    fed.put("q2", ())
    assert not fed.readers("q1")
    assert not fed.feeders("q2")
    assert fed.resting_on("q1") == {"q1"}


def test_a_change_concerns_a_run_and_those_that_it_reads_or_has_read() -> None:
    fed = FedRuns()
    for number in range(2, 100):
        fed.put(f"q{number}", feeds("q1"))
    fed.take_changed()
    fed.put("q5", feeds("q7"))
    assert set(fed.take_changed()) == {"q5", "q1", "q7"}
    assert not fed.take_changed()
    fed.note("q9")
    assert set(fed.take_changed()) == {"q9"}


def test_the_readers_of_a_fragment_are_known_while_they_read_it() -> None:
    fed = FedRuns()
    fed.put("q2", feeds("q1"))
    fed.put("q3", [*feeds("q1"), *feeds("q1", source="f2"), *feeds("q1")])
    assert {name: set(readers) for name, readers in fed.parts("q1").items()} == {
        "f1": {"q2", "q3"},
        "f2": {"q3"},
    }
    fed.put("q3", feeds("q1", source="f2"))  # another fragment of the same run
    assert {name: set(readers) for name, readers in fed.parts("q1").items()} == {
        "f1": {"q2"},
        "f2": {"q3"},
    }
    fed.put("q2", ())
    fed.put("q3", ())
    assert not fed.parts("q1")
