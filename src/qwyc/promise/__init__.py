"""What is promised about new rows, and what the promise rests on."""
