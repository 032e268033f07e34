"""The IO ground floor of every service: the broker, files, clocks, logs.

Pure packages (`streamsql`, `stream_engine`) do not import it.
"""
