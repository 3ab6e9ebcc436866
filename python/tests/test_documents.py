"""What the documents show is run."""

import os
import pathlib
import re
import subprocess
import sys
import unittest
from typing import List

import doorway
from nodes import PATIENCE, Node, Script, program, skip

REPOSITORY = pathlib.Path(__file__).parents[2]
CLIENTS = "docs/clients.md"


def blocks(document: str, kind: str) -> List[str]:
    """The blocks of this kind in a document."""
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class Documents(unittest.TestCase):
    node: Node

    @classmethod
    def setUpClass(cls) -> None:
        cls.node = Node().start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.node.end()

    def run_words(self, words: List[str]) -> str:
        """Run a command that finds the program, the node and the package."""
        variables = {
            "DOORWAY_SOCKET": self.node.socket,
            "PATH": f"{pathlib.Path(program()).resolve().parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(pathlib.Path(doorway.__file__).parents[1]),
        }
        done = subprocess.run(
            words,
            env={**os.environ, **variables},
            cwd=self.node.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), f"{words}\n{done.stdout}")
        return done.stdout

    def test_the_programs_in_python_run(self) -> None:
        count = 0
        for document in (CLIENTS, "README.md", "python/README.md"):
            for block in blocks(document, "python"):
                with self.subTest(document=document, block=block):
                    said = self.run_words([sys.executable, "-X", "dev", "-c", block])
                    self.assertRegex(said, "inside, with fence [0-9]+|one of four|written")
                    count += 1
        self.assertGreaterEqual(count, 6)

    def test_the_program_that_uses_http_runs(self) -> None:
        [block] = blocks("docs/http.md", "python")
        own = 'f"\\0doorway-{os.getuid()}"'
        self.assertIn(own, block)
        block = block.replace(own, repr("\0" + self.node.socket[1:]))
        said = self.run_words([sys.executable, "-X", "dev", "-c", block])
        self.assertRegex(said, "save home with fence [0-9]+, within (10.0|9.[0-9]) s\nsave mail")

    def test_the_scripts_run(self) -> None:
        for block in blocks(CLIENTS, "sh"):
            with self.subTest(block=block):
                said = self.run_words(["sh", "-euc", block])
                self.assertRegex(said, "inside, with fence [0-9]+")

    def test_the_programs_in_rust_are_the_examples_and_run(self) -> None:
        programs = blocks(CLIENTS, "rust")
        self.assertEqual(len(programs), 2)
        for name, block in zip(["report", "kept"], programs):
            source = (REPOSITORY / f"crates/doorway-client/examples/{name}.rs").read_text()
            self.assertEqual(block, source.split("\n\n", 1)[1])
            example = pathlib.Path(program()).resolve().parent / f"examples/{name}"
            if not example.exists():
                build = f"it needs what `cargo build -p doorway-client --example {name}` builds"
                skip(self, build)
            self.assertRegex(self.run_words([str(example)]), "inside, with fence [0-9]+")

    def test_a_task_runs_once_at_a_time(self) -> None:
        text = (REPOSITORY / "python/examples/once_at_a_time.py").read_text(encoding="utf-8")
        first = Script(text, {"DOORWAY_SOCKET": self.node.socket})
        self.assertRegex(first.line(), "report with fence [0-9]+")
        second = Script(text, {"DOORWAY_SOCKET": self.node.socket})
        self.assertEqual(second.line(), "reports/nightly runs already")
        self.assertEqual((second.line(), second.end()), ("None", 0))
        assert first.process.stdin is not None
        first.process.stdin.close()
        self.assertEqual((first.line(), first.end()), ("done", 0))


if __name__ == "__main__":
    unittest.main()
