"""The sprocket command."""
