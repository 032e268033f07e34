"""Measures on this machine the constants by which the optimizer compares plans.

In the order of a calibration: `workloads` (statements, and readings for them), `engine_runs` (the
stream engine at one or two sites, fed by hand), `operator_times` and `kept_memory` (what operators
take), `bunch_times` (further rows that change at once), `batch_times` (what a batch takes on its
way), `broker_times` (a message over a broker), `executor_times` (stored tables), `rounds` (medians
of several rounds), `machine_constants` (all of them, within a time).
"""
