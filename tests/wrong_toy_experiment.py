"""The wrong twin of the toy experiment."""

from tests.toy_experiment import WrongToy

EXPERIMENT = WrongToy()
