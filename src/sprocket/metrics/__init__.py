"""What runs here as metrics and as a state of health, for Prometheus, OpenTelemetry and probes.

`names` lists every metric. `of_broker`, `of_nameserver` and `of_proxy` read the values from the
tables that these keep anyway, so that nothing is counted a second time. `exporting` serves or sends
them.
"""
