"""Starting Spark: Java, the interpreter of workers, the package for clusters."""
