"""What holds for every test."""

import os
import sys
from collections.abc import Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING

import hypothesis
import pytest

from local_dp import registry
from tests.support.runs.at_end import OPEN
from tests.support.wrong import TWIN, check_twins, fails, twins_of

if TYPE_CHECKING:
    from tests.support.runs.shared import Once

# before numpy is imported: two workers with two threads each would wait for one another
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


hypothesis.settings.register_profile("untimed", deadline=None)  # a machine may be busy
hypothesis.settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Compiled modules are kept where pytest keeps its cache: or every interpreter that a test
    starts compiles the same files again."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`@pytest.mark.long(keep="id")`: the parameters with this id stay in the normal suite.
    `@pytest.mark.slow(only=("id", ...))`: these parameters are slow.

    What is slow runs only where it is asked for, even if it is long as well. `@wrong(...)` adds
    a run of the test with a wrong twin of the source in place, which must fail.
    """
    for item in list(items):
        if isinstance(item, pytest.Function):
            items += twins_of(item)
    if not any("::" in argument for argument in config.args):
        check_twins(items)
    for item in items:
        for mark in list(item.own_markers):
            name = (
                item.callspec.id
                if isinstance(item, pytest.Function) and hasattr(item, "callspec")
                else None
            )
            selection = mark.name == "long" and mark.kwargs.get("keep", "") == name
            if selection or (mark.name == "slow" and name not in mark.kwargs.get("only", (name,))):
                item.own_markers.remove(mark)
    if config.option.markexpr and "slow" not in config.option.markexpr:
        config.hook.pytest_deselected(
            items=[item for item in items if item.get_closest_marker("slow")]
        )
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    twin = pyfuncitem.stash.get(TWIN, None)
    if twin is None:
        return (yield)
    return (yield from fails(twin))


@pytest.fixture(autouse=True)
def _own_state(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[None]:
    """What a test's servers and clients keep is the test's, and not the user's, and so are its
    plug-ins; its runs start amqtt, whether there is a Mosquitto or not. Its end closes `OPEN`."""
    registry.PLUG_INS.clear()
    registry._CLASSES.clear()
    name = f"state-{blake2b(request.node.nodeid.encode(), digest_size=8).hexdigest()}"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / name))
    monkeypatch.setenv("LOCAL_DP_BROKER", "amqtt")
    yield
    OPEN.close()


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> "Once":
    """Measurements that several tests need, whichever worker runs them."""
    from tests.support.runs.shared import Once, shared_folder

    return Once(shared_folder(tmp_path_factory))


@pytest.fixture(scope="session")
def interpreter() -> Iterator[str]:
    """An interpreter of this worker that has imported what helpers and brokers import."""
    from tests.support.runs.warm import warm_interpreter

    with warm_interpreter() as path:
        yield path


@pytest.fixture
def warm(interpreter: str) -> Iterator[None]:
    """The runs of this test are not about how their processes start: they are forked."""
    from tests.support.runs.warm import forked_from

    with forked_from(interpreter):
        yield
