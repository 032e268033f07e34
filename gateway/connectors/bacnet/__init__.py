"""Sources from BACnet/IP: properties of objects, read and notified."""
