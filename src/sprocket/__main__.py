"""`python -m sprocket` is the command `sprocket`."""

from sprocket.cli.entry import main

main()
