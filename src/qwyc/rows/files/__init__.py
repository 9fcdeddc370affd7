"""Tables in files and pipes, read and written batch by batch."""
