"""The host of an engine site: owns clock and inbox, calls step, publishes."""
