"""Sources from Modbus TCP: registers, coils and inputs of one or several units.

`register_address` is the text of FROM and FORMAT; `read_blocks` what is read in one request.
"""
