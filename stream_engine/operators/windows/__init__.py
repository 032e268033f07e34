"""Windows: TUMBLE and HOP, ROWS, OVER, and windows that close with the watermark."""
