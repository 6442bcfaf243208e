"""`python -m turnkeeper`: the same as the command `turnkeeper`."""

from turnkeeper.cli import main

if __name__ == "__main__":
    main(prog_name="turnkeeper")
