"""A view is computed from tables that were read since it became due."""

from static_engine.refreshing.refresher import LONGEST_WAIT, Readiness


class World:
    """Readiness by a clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.readiness = Readiness(lambda: self.now)


def test_a_view_is_ready_once_its_tables_were_read_since_it_became_due() -> None:
    views = World().readiness
    assert views.due(["v"]) == {"v"}
    assert not views.is_ready("v")
    views.reading(["v"])
    assert views.due(["v", "w"]) == {"w"}
    assert (views.is_ready("v"), views.is_ready("w")) == (True, False)


def test_what_was_computed_or_is_no_longer_due_starts_anew() -> None:
    views = World().readiness
    views.due(["v", "w"])
    views.reading(["v"])
    views.done("v")
    assert not views.is_ready("v")
    assert views.due(["v"]) == {"v"}
    assert views.due(["v", "w"]) == {"v", "w"}


def test_a_view_that_was_not_due_for_a_while_has_its_tables_read_again() -> None:
    views = World().readiness
    views.due(["v"])
    views.reading(["v"])
    assert views.due([]) == frozenset()
    assert views.due(["v"]) == {"v"}
    assert not views.is_ready("v")


def test_who_asks_has_the_tables_read_again() -> None:
    views = World().readiness
    views.due(["v"])
    views.reading(["v"])
    views.asked("v")
    assert not views.is_ready("v")
    assert views.due(["v"]) == {"v"}


def test_files_that_keep_changing_are_not_waited_for_forever() -> None:
    world = World()
    views = world.readiness
    views.due(["v"])
    views.reading(["v"])
    views.unsettled("v")
    assert not views.is_ready("v")
    world.now = LONGEST_WAIT
    views.due(["v"])
    views.reading(["v"])
    views.unsettled("v")
    assert views.is_ready("v")
    views.done("v")
    views.due(["v"])
    views.reading(["v"])
    views.unsettled("v")
    assert not views.is_ready("v"), "the next wait begins anew"
