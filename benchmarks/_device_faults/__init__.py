"""The parts of `benchmarks.device_faults`: devices, federation, kills, and the verdict."""
