"""What the JavaScript client does and does not do, by Node's own tests."""

import subprocess

from tests.support.web import FLAGS, NODE, ROOT, needs_node


@needs_node
def test_a_client_does_what_it_says() -> None:
    """Each case of client.test.mjs passes."""
    assert NODE is not None
    words = [
        NODE,
        *FLAGS,
        "--test",
        "--test-reporter=tap",
        str(ROOT / "tests" / "web" / "client.test.mjs"),
    ]
    made = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert made.returncode == 0, made.stdout[-4000:]
    assert "# pass 0" not in made.stdout
    assert "# fail 0" in made.stdout
