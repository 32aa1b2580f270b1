"""The wrong twin of the toy experiment."""

from tests.support.toy_experiment import WrongToy

EXPERIMENT = WrongToy()
