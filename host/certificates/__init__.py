"""Certificates of a federation: its own authority, keys, requests, what certificates say.

`authority` signs, `certificate_request` is what a gateway sends to be signed,
`certificate_facts` reads any certificate, `certificate_files` keeps them on disk. These modules
load `cryptography`, so a service imports them only when it makes or reads certificates.
"""
