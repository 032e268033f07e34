"""Sparkplug B as a conversation: births, data that refers to them, deaths.

`sparkplug_pattern` says which nodes and devices are a source's, `device_metrics` what is known of
one device, `followed_nodes` how many are followed, `sparkplug_session` what a message changes. The
time is an argument.
"""
