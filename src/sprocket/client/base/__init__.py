"""What every part of the client uses: argument checks, the client's environment, its lifecycle."""
