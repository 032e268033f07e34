"""The memo: groups of equal plans, what is asked of them, and the alternatives that give it.

`properties`: place, partitioning and time. `groups`: alternatives and their children. `memo`:
groups by plan, and complete plans by number.
"""
