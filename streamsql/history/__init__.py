"""Scans of the past as ordinary algebra over what the lake keeps."""
