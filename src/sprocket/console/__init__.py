"""What an operator sees and steers: the operations, and the ways to them."""
