"""Joins by key: keys of streams in (`received_keys`), what tables hold of them out.

`keyed_fragments` keeps the answer to every key of a fragment; `key_lookups` finds answers, in the
database itself or over tables that were read; `keyed_queries` does what is due.
"""
