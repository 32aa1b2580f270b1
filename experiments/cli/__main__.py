"""`python -m experiments.cli`: the command line, where its script is not installed."""

from experiments.cli.main import main

main()
