"""Which runs read others, and which of them have to be looked at."""

from federated_optimizer.coordinator.queries.runs.fed_runs import FedRuns


def test_both_directions_are_known() -> None:
    fed = FedRuns()
    fed.put("q2", {"q1"})
    fed.put("q3", {"q1", "q2"})
    assert set(fed.readers("q1")) == {"q2", "q3"}
    assert set(fed.feeders("q3")) == {"q1", "q2"}
    assert fed.resting_on("q2") == {"q2", "q3"}
    fed.put("q3", {"q2"})
    assert set(fed.readers("q1")) == {"q2"}
    fed.put("q2", set())
    assert not fed.readers("q1")
    assert not fed.feeders("q2")
    assert fed.resting_on("q1") == {"q1"}


def test_a_change_concerns_a_run_and_those_that_it_reads_or_has_read() -> None:
    fed = FedRuns()
    for number in range(2, 100):
        fed.put(f"q{number}", {"q1"})
    fed.take_changed()
    fed.put("q5", {"q7"})
    assert set(fed.take_changed()) == {"q5", "q1", "q7"}
    assert not fed.take_changed()
    fed.note("q9")
    assert set(fed.take_changed()) == {"q9"}
