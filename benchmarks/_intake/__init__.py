"""The processes of `benchmarks.intake`: a gateway with a device of its own, and a sender."""
