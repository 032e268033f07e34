"""Figures of a process in Prometheus' text form: families, text, process, server of /metrics."""
