"""The operating system behind the ports, and the start of processes."""
