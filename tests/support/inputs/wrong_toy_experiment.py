"""The wrong twin of the toy experiment."""

from tests.support.inputs.toy_experiment import WrongToy

EXPERIMENT = WrongToy()
