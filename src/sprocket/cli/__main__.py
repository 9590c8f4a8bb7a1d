"""`python -m sprocket.cli` is the command `sprocket`."""

from sprocket.cli.main import main

main()
