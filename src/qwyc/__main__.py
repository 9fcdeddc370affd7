"""`python -m qwyc`: the same as `qwyc`."""

from _qwyc_command import main

if __name__ == "__main__":
    main()
