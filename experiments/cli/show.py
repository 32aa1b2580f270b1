"""Prints a result, as JSON or for a person."""

import json

from local_dp.experiments.api.printable import Printable
from local_dp.experiments.text.layout import screen_width
from local_dp.experiments.text.screen import SCREEN


def show(result: Printable, as_json: bool) -> None:
    SCREEN.tell(json.dumps(result.to_dict()) if as_json else result.text(screen_width()))
