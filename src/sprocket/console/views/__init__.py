"""What the pages of the console show, made from the results of operations: values only."""
