"""Tables of Delta and Iceberg, to which Spark's executors write Parquet and the driver commits."""
