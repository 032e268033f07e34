"""Windows that start full: pieces of the lake for engine sites.

`lake_pieces` finds them, `fill_requests` answers on the broker.
"""
