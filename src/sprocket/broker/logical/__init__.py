"""Static topics: requests in logical queues, answered from the queues that hold them."""
