"""Joining a federation: a key made here, credentials from the console, files to start with.

`console_requests` speaks HTTPS with the console, `joined_files` is what is written, `joining` both;
`credential_changes` answers the coordinator when it gives a running gateway new credentials.
"""
