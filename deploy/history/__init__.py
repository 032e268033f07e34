"""Trials on history: the stream engine run over what the lake has kept, in a process of its own.

`happenings` the past in the order in which it became known · `lake_happenings` reads it from the
lake · `replayed_federation` all sites of a federation in one process · `replayed_alarm` when its
rows raise an alarm · `trial_run` puts them together · `trial_process` is the process,
`engine_runner` starts it
· `past_sizes` is the process that says for EXPLAIN how much is read, `asked_sizes` asks it.
"""
