"""Takes messages in, hands them out."""
