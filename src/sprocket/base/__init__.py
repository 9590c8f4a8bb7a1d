"""The ground: ports, waiting, time budgets, errors, settings. Uses nothing of ours."""
