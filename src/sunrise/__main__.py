"""`python -m sunrise` is the command `sunrise`."""

from sunrise.cli import main

if __name__ == "__main__":
    main()
