"""Running queries that change their plans: when, why, how they move, and what came of it.

In the order of their way: `plan_basis` (what a choice rests on, and in which ranges it stays),
`reconsidered` (the plan that would be taken now; `over_others` and `chosen_plans` where results
of others play a part), `filled_runs` (when its windows hold the same),
`moves` (the new run beside the old one, and the hand-over), `run_cuts` (which of them has read
more), `known_runs` (when each run was looked at), `adaptation` (which is looked at next),
`moves_under_way` (which go on, and how many at once), `contested_parts` (which wait for others),
`decision_rows` (how it is told). What is decided goes to `store/plan_decisions`.
"""
