"""libqwyc as it is installed: header, libraries, pkg-config, CMake package, and the examples."""

import fcntl
import os
import shutil
import subprocess

import numpy as np
import pytest

from exported import odd_rows, with_random_policy
from forests import random_ensemble, random_rows
from library import BUILD, ROOT, built, cmake, tool
from qwyc.files import classifier_file

WARNINGS = ("-Wall", "-Wextra", "-pedantic", "-Werror")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Where the library is installed."""
    folder = tmp_path_factory.mktemp("installed")
    built()
    with open(BUILD.parent / "library.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cmake("--install", BUILD, "--prefix", folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A classifier, its file, and rows that it takes."""
    ensemble = random_ensemble(4, n_trees=20)
    fast = with_random_policy(ensemble, random_rows(4, ensemble))
    path = tmp_path_factory.mktemp("model") / "model.qwyc"
    path.write_bytes(classifier_file.to_bytes(fast))
    rows = odd_rows(ensemble, 200).astype(np.float64)
    return fast, path, rows[~np.isinf(rows).any(axis=1)]


def run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, check=False, **options
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return done.stdout.decode()


def with_library(prefix):
    return {**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")}


def link(prefix, source, target, *flags):
    folders = (f"-I{prefix}/include", f"-L{prefix}/lib", "-lqwyc")
    compiler = "c++" if source.suffix == ".cpp" else "cc"
    run(compiler, *WARNINGS, *flags, source, "-o", target, *folders, "-lm", "-pthread")


def lines(fast, rows):
    decided = fast.decide(rows)
    return [f"{a},{b}" for a, b in zip(decided.label.tolist(), decided.steps.tolist(), strict=True)]


def test_only_the_functions_of_the_header_are_exported(prefix):
    shown = run("nm", "-D", "--defined-only", prefix / "lib" / "libqwyc.so")
    exported = {line.split()[-1] for line in shown.splitlines()}
    header = (prefix / "include" / "qwyc.h").read_text()
    declared = {
        part.split("(")[0].split()[-1].lstrip("*") for part in header.split("QWYC_API ")[3:]
    }
    assert exported == declared
    assert len(declared) == 27
    assert (prefix / "lib" / "libqwyc.so.1").exists()


@pytest.mark.parametrize("standard", ["c99", "c11", "c++11", "c++20"])
def test_the_header_is_clean_c_and_cpp(prefix, standard, tmp_path):
    source = tmp_path / ("use.cpp" if "+" in standard else "use.c")
    source.write_text('#include "qwyc.h"\nint main(void) { return qwyc_abi_version() != 1; }\n')
    link(prefix, source, tmp_path / "use", f"-std={standard}")
    run(tmp_path / "use", env=with_library(prefix))


def test_the_example_in_c_decides_a_csv(prefix, model, tmp_path):
    fast, path, rows = model
    program = tmp_path / "decide_file"
    link(prefix, ROOT / "examples" / "c" / "decide_file.c", program, "-std=c99")
    text = "\n".join(",".join("" if np.isnan(x) else repr(x) for x in row) for row in rows.tolist())
    found = run(program, path, input=text.encode(), env=with_library(prefix))
    assert found.splitlines() == lines(fast, rows)
    bad = subprocess.run(
        [program, tmp_path / "none.qwyc"],
        capture_output=True,
        check=False,
        env=with_library(prefix),
    )
    assert bad.returncode == 2
    assert b"No such file" in bad.stderr


def test_the_example_in_cpp_shares_one_model_among_threads(prefix, model, tmp_path):
    fast, path, rows = model
    program = tmp_path / "thread_pool"
    link(prefix, ROOT / "examples" / "cpp" / "thread_pool.cpp", program, "-std=c++17")
    many = np.tile(rows, (20, 1))
    found = run(program, path, "8", input=many.tobytes(), env=with_library(prefix))
    index = fast.ensemble.classes.tolist().index
    decided = fast.decide(many)
    expected = zip(decided.label.tolist(), decided.steps.tolist(), strict=True)
    assert found.splitlines() == [f"{index(label)},{steps}" for label, steps in expected]


def test_pkg_config_and_the_static_library(prefix, model, tmp_path):
    fast, path, rows = model
    facts = (prefix / "lib" / "pkgconfig" / "qwyc.pc").read_text()
    private = facts.split("Libs.private: ")[1].splitlines()[0].split()
    source, program = ROOT / "examples" / "c" / "decide_file.c", tmp_path / "static"
    library = prefix / "lib" / "libqwyc.a"
    run("cc", *WARNINGS, f"-I{prefix}/include", source, library, "-o", program, *private)
    text = "\n".join(
        ",".join("" if np.isnan(x) else repr(x) for x in row) for row in rows[:20].tolist()
    )
    assert run(program, path, input=text.encode()).splitlines() == lines(fast, rows[:20])


def test_find_package(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\n"
        "project(use LANGUAGES C CXX)\n"
        "find_package(qwyc REQUIRED)\n"
        "add_executable(shared use.c)\n"
        "target_link_libraries(shared PRIVATE qwyc::qwyc)\n"
        "add_executable(static use.c)\n"
        "target_link_libraries(static PRIVATE qwyc::static)\n"
    )
    (tmp_path / "use.c").write_text(
        "#include <qwyc.h>\nint main(void) { return qwyc_abi_version() != QWYC_ABI_VERSION; }\n"
    )
    out = tmp_path / "build"
    cmake("-S", tmp_path, "-B", out, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    cmake("--build", out)
    run(out / "shared")
    run(out / "static")


@pytest.mark.slow
def test_the_example_in_rust(prefix, model, tmp_path):
    """`make test-all` installs the compiler where it can."""
    fast, path, rows = model
    compiler = shutil.which("rustc") or tool("rustc")
    program = tmp_path / "decide"
    source = ROOT / "examples" / "rust" / "decide.rs"
    run(compiler, "-O", "-L", prefix / "lib", "-l", "qwyc", source, "-o", program)
    arguments = [",".join(map(repr, row)) for row in rows[:50].tolist()]
    found = run(program, path, *arguments, env=with_library(prefix))
    assert found.splitlines() == lines(fast, rows[:50])
