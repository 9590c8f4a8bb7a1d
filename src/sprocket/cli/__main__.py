"""`python -m sprocket.cli` runs the command `sprocket`."""

from sprocket.cli.entry import main

main()
