"""Gateways that administrators enrol.

`fleet` is the interface; `broker_accounts` asks the broker, `gateway_dialogue` a gateway,
`gateway_credentials` makes certificates and passwords, `token_flaws` judges tokens, `join_limits`
bounds the one route that asks for no account.
"""
