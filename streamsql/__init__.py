"""The StreamSQL language and everything Pando's services share.

Pure: no input or output, no clock. Engines, gateways, optimizer and console meet only here.
"""
