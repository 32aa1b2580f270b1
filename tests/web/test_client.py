"""What the JavaScript client does and does not do, by Node's own tests."""

import subprocess

from tests.support import web
from tests.support.web import FLAGS, NODE, needs_node
from tests.support.wrong import wrong


@wrong(
    "clients/web/plan.js",
    "!(totals.run + nano <= perRun && totals.life + nano <= life)",
    "(totals.run + nano > perRun || totals.life + nano > life)",
    "a policy that is no number allows everything",
)
@wrong(
    "clients/web/client.js",
    "return !missing.length || missing.some",
    "return true || missing.some",
    "a member in JavaScript says hello at a roll for others",
)
@wrong(
    "clients/web/store.js",
    "if (before) return before;",
    "",
    "a second answer in the same round takes the place of the first",
)
@wrong(
    "clients/web/client.js",
    "const planned = await plan(request, this);",
    "await this.row; const planned = await plan(request, this);",
    "a refusal of a client in JavaScript waits for the record",
)
@wrong(
    "clients/web/client.js",
    (
        "const entry = await this.store.commit(made.entry, (totals) => check(planned, totals, "
        "this.policy));"
    ),
    (
        "void this.store.commit(made.entry, (totals) => check(planned, totals, this.policy)); "
        "const entry = made.entry;"
    ),
    "a reply of a client in JavaScript leaves before its charge is durable",
)
@wrong(
    "clients/web/randomizers/index.js",
    "if (compare(worstRatio(randomizer.channel), expEpsilon(randomizer.nano)) > 0) {",
    "if (compare(worstRatio(randomizer.channel), expEpsilon(2 * randomizer.nano)) > 0) {",
    "a channel in JavaScript may lose twice what is charged",
)
@wrong(
    "clients/web/plan.js",
    "for (const { randomizer } of planned) verify(randomizer);",
    "",
    "a randomizer in JavaScript is used unverified",
)
@needs_node
def test_a_client_does_what_it_says() -> None:
    """Each case of client.test.mjs passes."""
    assert NODE is not None
    words = [
        NODE,
        *FLAGS,
        "--test",
        "--test-reporter=tap",
        str(web.ROOT / "tests" / "web" / "client.test.mjs"),
    ]
    process = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert process.returncode == 0, process.stdout[-4000:]
    assert "# pass 0" not in process.stdout
    assert "# fail 0" in process.stdout
