"""What every part of the client uses: checked arguments, the world outside, lifecycle."""
