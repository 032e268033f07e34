"""Example 14 both ways: where it crosses over, and that both ways run."""

from benchmarks.example_14 import APART, TOGETHER, WAYS, Figures, crossovers, measured, world_of


def test_a_crossover_is_where_the_network_is_no_longer_best() -> None:
    figures: dict[int, Figures] = {
        10: {"network": 10.0, "base": 30.0, "chosen": "network"},
        20: {"network": 20.0, "base": 30.0, "keys": 25.0, "chosen": "network"},
        40: {"network": 35.0, "base": 30.0, "keys": 40.0, "chosen": "base"},
        50: {"network": 20.0, "base": 30.0, "chosen": "network"},
    }
    assert crossovers(figures) == {"measured": 30.0, "chosen": 30.0}
    assert crossovers({10: figures[10]}) == {"measured": None, "chosen": None}


def test_few_free_seats_are_joined_in_the_network_and_many_at_the_base() -> None:
    world = world_of(TOGETHER, 8.0, 1)
    few, many = measured(world, 5), measured(world, 100)
    assert (few["chosen"], many["chosen"]) == ("network", "base")
    assert few["right"]
    assert many["right"]


def test_rooms_away_from_their_seats_have_all_ways() -> None:
    found = measured(world_of(APART, 5.0, 1), 50)
    assert found["right"]
    assert found.keys() >= set(WAYS)
