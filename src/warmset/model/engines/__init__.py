"""What engines make of a budget for KV: their pools, to the digit of their logs."""
