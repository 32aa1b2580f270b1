"""`python -m local_dp`: the command line, under the library's name."""

from local_dp.cli.main import main

if __name__ == "__main__":
    main()
