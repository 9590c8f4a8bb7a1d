"""What all packages share: ports, waiting, deadlines, errors, settings."""
