"""The walking graph, derived from the shapes of rooms and doors."""
