"""Device simulators, each a process of its own that hands out numbers and logs what it did."""
