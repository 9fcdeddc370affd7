"""The `.qwyc` file: what it holds, and how it is written, read and checked."""
