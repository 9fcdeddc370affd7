"""`python -m fuzz.guided TARGET`: like `python -m fuzz`, guided by the lines that a case reaches.

Needs atheris, which brings libFuzzer for Python. Cases that reach something new are kept in
build/fuzz/guided/TARGET and changed again. It runs in one process: a crash, an exception that is not one of
qwyc's own, a case of more than 10 seconds or more than 2 GB of memory ends it, and leaves the case in
build/fuzz/findings."""

import argparse
import importlib.util
import random
import sys
import sysconfig
import tempfile
from pathlib import Path

import atheris


class NativeModule:
    """Finds qwyc._native where an editable install has put it."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "qwyc._native":
            return None
        folder = Path(sysconfig.get_path("platlib")) / "qwyc"
        found = next(folder.glob("_native.*.so"))
        return importlib.util.spec_from_file_location(name, found)


# Atheris sees what Python's own loaders load, and nothing of an editable install.
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
sys.meta_path.insert(0, NativeModule)
sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

with atheris.instrument_imports(include=["qwyc"], exclude=["qwyc._native"]):
    from fuzz.corpus import corpus
    from fuzz.mutate import mutated
    from fuzz.targets import TARGETS, run

FOLDER = Path("build/fuzz/guided")
FINDINGS = Path("build/fuzz/findings")
MOST = 32_768  # bytes of a case


def main() -> None:
    """Run the command. libFuzzer ends the process; its exit code is not 0 if there is a finding."""
    parser = argparse.ArgumentParser(prog="fuzz.guided", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    kept = FOLDER / options.target
    kept.mkdir(parents=True, exist_ok=True)
    FINDINGS.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(corpus(options.target)):
        if len(content) <= MOST:
            (kept / f"start-{number}").write_bytes(content)
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = tempfile.TemporaryDirectory(dir=memory)
    path = Path(folder.name) / f"case.{options.target.split('-')[0]}"

    def one(data: bytes) -> None:
        path.write_bytes(data)
        run(options.target, path)

    def change(data: bytes, most: int, seed: int) -> bytes:
        """Half of the changes keep the structure of the file, as in `python -m fuzz`."""
        if seed % 2:
            return atheris.Mutate(data, most)
        return mutated(options.target, data, random.Random(seed))[:most]

    arguments = [
        sys.argv[0],
        f"-max_total_time={options.seconds}",
        f"-seed={options.seed}",
        f"-max_len={MOST}",
        "-timeout=10",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        f"-artifact_prefix={FINDINGS}/guided-{options.target}-",
        str(kept),
    ]
    atheris.Setup(arguments, one, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
