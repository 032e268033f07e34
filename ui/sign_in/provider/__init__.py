"""People who sign in at an OpenID Connect provider.

`ui/provider_settings.py` says which provider and who gets which role; `provider_answers.py` asks it
over HTTP; `id_tokens.py` checks what it says of a person; `pending_sign_ins.py` remembers who was
sent there; `provider_sign_in.py` puts them together, `provider_routes.py` serves browsers.
"""
