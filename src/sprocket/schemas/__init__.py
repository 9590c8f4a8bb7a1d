"""Bodies with a schema: JSON, Avro and Protobuf, with schemas from files or from a registry.

`sprocket.schemas.choice` makes a `BodyCodec` from what a user gives. All but the two sources of
schemas (`folder_registry`, `http_registry`) and the cache before them is free of I/O.
"""
