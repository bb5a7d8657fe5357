"""``python cli.py …`` is ``irteval …``."""

from irteval.cli import main

if __name__ == "__main__":
    main()
