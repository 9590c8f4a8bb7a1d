"""`python -m sprocket.cli` is the command `sprocket`."""

from sprocket.cli.entry import main

main()
