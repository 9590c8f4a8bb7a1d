"""The methods of the service."""
