"""What is given to others: the wheel, the source archive, and the files in `deploy/`."""
