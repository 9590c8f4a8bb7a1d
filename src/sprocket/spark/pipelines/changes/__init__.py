"""Change data of databases: Canal's and Debezium's messages as changes of rows of a table."""
