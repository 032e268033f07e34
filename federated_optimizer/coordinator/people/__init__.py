"""People: accounts, sessions and API tokens.

`people_service.py` is what the console asks (`contract/people_model.py`). It keeps everybody in
memory (`admissions.py`) beside the tables (`people_store.py`), so that a request costs one look-up.
`account_rules.py` says which names, passwords, labels and expiries can be; `passwords.py` hashes,
`random_secrets.py` makes secrets; `sign_in_attempts.py` slows down who guesses.
"""
