"""The commands: their names and lines of help stand here, and a command's module is imported when it is asked for, so that help is there at once."""

from collections.abc import Callable
from importlib import import_module

import click

from local_dp.experiments.cli.completion import OWN, install_completion, show_completion
from local_dp.experiments.cli.fields import Group, Option, command_of
from local_dp.experiments.text.screen import SCREEN

COMMANDS: dict[str, tuple[str, str]] = {  # where it is, and the first line of its help
    "run": ("run.run:RUN", "Runs a protocol: clients, server and message bus, from one command."),
    "plan": ("inspect.plan:PLAN", "Says how many clients an accuracy takes, or how accurate so many clients are."),
    "compare": ("inspect.plan:COMPARE", "Measures randomizers beside one another, over epsilons and numbers of clients: a table and a figure."),
    "curate": ("curate.curate:CURATE", "Asks a trusted curator of a table: median, mean, histogram, intervals, marginals, synthetic, learn and more."),
    "budget": ("curate.budget:Budget", "Makes a budget for one table in a file, or shows what is spent of it, or of a client's store, and what is left."),
    "price": ("curate.budget:Price", "Prices a list of mechanisms by every rule of composition: basic, advanced, tanh, zCDP and exact."),
    "shuffle": ("curate.shuffle:Shuffle", "Accounts for shuffled reports: epsilon from above and from below, exact where each report is a bit."),
    "mix": ("curate.shuffle:MIX", "Simulates shares of symbols behind a shuffler, from several messages a client: its symbol among blanket messages."),
    "attack": ("curate.attack:ATTACK", "Tries what noisy answers about a table would give away: rows by reconstruction, members by tracing."),
    "protocols": ("inspect.listing:Protocols", "Lists the protocols: model, parameters with their defaults, source."),
    "randomizers": ("inspect.listing:Randomizers", "Lists the randomizers on this machine, those of installed packages included."),
    "queries": ("inspect.listing:Queries", "Lists the queries: what a client may be asked about its record."),
    "mechanisms": ("inspect.listing:Mechanisms", "Lists the trusted curator's mechanisms, and which privacy each has: pure or approximate."),
    "describe": ("inspect.listing:Describe", "Describes one protocol, randomizer or query: claim, privacy, utility, cost, parameters, source."),
    "audit": ("inspect.check:Audit", "Audits a randomizer: its exact loss, whether its sampler does what it declares, and how far that is known."),
    "server": ("run.join:SERVER", "Coordinates a run whose clients join from elsewhere."),
    "resume": ("run.journals:Resume", "Goes on with a run whose server was killed, from what it has kept."),
    "runs": ("run.journals:Runs", "Lists the runs that servers on this machine have kept, and where each stands."),
    "show": ("run.journals:Show", "Prints what a run gave, or where it stands."),
    "shuffler": ("run.join:Shuffler", "Stands between the clients and the server of a run, and takes the senders away."),
    "host": ("run.join:HOST", "Holds many clients of a run, from index --start on: the rows of a table of theirs, or synthetic records."),
    "client": ("run.join:CLIENT", "Is one client of a run: with the one row of a table of its own, or a synthetic record."),
    "experiment": (
        "inspect.experiment:RunExperiment",
        "Runs an experiment, or all of them: claim, measurements, figures, tables and a verdict.",
    ),
    "report": ("inspect.experiment:Report", "Writes an index, report.html, and a page for each chapter, which explain everything in a folder of results."),
    "dimension": (
        "inspect.check:Dimension",
        "Computes a class's statistical-query dimensions, and how many clients every local learner needs.",
    ),
    "certify": ("inspect.check:Certify", "Checks a certificate independently: every number in it is computed again from its queries."),
    "coverage": (
        "inspect.coverage:Coverage",
        "Measures how often stated 95 % intervals contain the truth, by repetition and exactly.",
    ),
    "bench": (
        "inspect.bench:Bench",
        "Measures the speeds of this machine beside references of the same run.",
    ),
    "export": ("inspect.export:Export", "Writes a real table that an installed package ships, as CSV; needs the extra `[examples]`."),
    "docs": ("operate.docs:Docs", "Builds the documentation as a site and opens it: tutorials, protocols, gallery, reference."),
    "keys": ("operate.keys:KEYS", "Makes keys that sign what is said in a run, and the roster that binds them to clients."),
    "broker-config": (
        "operate.broker_config:BrokerConfig",
        "Writes a Mosquitto configuration for a run over a network into DIR: TLS, access rules, limits, certificates.",
    ),
    "schema": ("inspect.listing:Schema", "Prints the JSON schema of what `run --json` and `server --json` print."),
}


class Commands(Group):
    """All commands, none of them imported."""

    example = "local-dp run survey --help"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def line_of(self, ctx: click.Context, name: str) -> str:
        return COMMANDS[name][1]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        found = getattr(import_module(f"local_dp.experiments.cli.{module}"), attribute)
        return found if isinstance(found, click.Command) else command_of(name, found)


def _show_version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from local_dp.experiments.tiers.version import installed_version

        SCREEN.tell(f"local-dp {installed_version()}")
        ctx.exit()


def _about_completion(name: str, callback: Callable[[click.Context, click.Parameter, str | None], None], help: str) -> Option:
    """An option that ends the program, with the name of a shell after it or not."""
    return Option([name], metavar="[SHELL]", is_flag=False, flag_value=OWN, is_eager=True, expose_value=False, callback=callback, help=help)


APP = Commands(
    "local-dp",
    help="A laboratory of the local model of differential privacy.",
    no_args_is_help=True,
    params=[
        Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version and end"),
        _about_completion("--show-completion", show_completion, "Show the script that completes names in bash, zsh or fish"),
        _about_completion("--install-completion", install_completion, "Write that script where the shell reads it"),
    ],
)
