"""`python -m sprocket.demo.cluster` runs the demo of failover. `--help` lists its options."""

from __future__ import annotations

from sprocket.demo.cluster.command import main

if __name__ == "__main__":
    main()
