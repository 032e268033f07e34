"""The connector file: lines that are appended to the files of a folder, or whole files.

`file_options` what an endpoint and a source may say; `place` how far a file was read; `folder` what
is new in a folder; `file_connector` polls.
"""
