"""The command `sprocket`."""
