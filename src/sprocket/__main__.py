"""`python -m sprocket` is the command `sprocket`."""

from sprocket.cli.main import main

main()
