"""What a message is: values and their bytes. Pure."""
