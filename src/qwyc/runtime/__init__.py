"""Shared services: threads, memory, progress, timing, arguments and output files."""
