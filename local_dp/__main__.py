"""`python -m local_dp`: the command line, under the library's name."""

from experiments.cli.main import main

if __name__ == "__main__":
    main()
