"""The audit log: who changed what at a server, when, and with which result.

`codes` says which requests are recorded, `entries` what of them, `trail` sees them at the dispatch,
`audit_log` writes, `reading` reads the files again. `docs/formats/audit.md` has the form of a line.
"""
