"""asyncio around the sans-I/O protocol."""
