"""The network of shared computations.

`node_words` and `run_nodes` say what the nodes of a run are; `network_index` knows which node
rests on which, and how many queries on each.
"""
