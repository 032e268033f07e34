"""What tests of the engine are made of: small random plans, events and their reference answer.

Domains are tiny on purpose: rows collide, keys match, groups vanish and come back.
"""
