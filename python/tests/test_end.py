"""Nothing is left behind, regardless of how Python ends."""

import gc
import os
import signal
from pathlib import Path

import pytest
from conftest import namespaces, processes, python, until

import longwire

START = """
import longwire, os, signal, sys, time
link = longwire.link()
sleeping = link.near.popen(["sleep", "1000"])
detached = link.far.popen("setsid sleep 1000 & wait", shell=True)
networks = [os.readlink(f"/proc/{node._process}/ns/net") for node in (link.near, link.far)]
print(link._directory.path, *networks, flush=True)
"""


def is_gone(directory: str) -> bool:
    return not processes(directory)


@pytest.mark.parametrize(
    "ending",
    [
        "link.close()",
        "sys.exit(3)",
        "raise ValueError",
        "os._exit(1)",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "os.kill(os.getpid(), signal.SIGINT); time.sleep(10)",
        "if os.fork() == 0:\n    time.sleep(5)\nelse:\n    os._exit(0)",
    ],
)
def test_an_end_of_python_ends_the_link_and_its_processes(ending: str) -> None:
    program = python(f"{START}sys.stdin.readline()\n{ending}", stdin=-1, stderr=-3)
    assert program.stdin is not None and program.stdout is not None
    directory, *networks = program.stdout.readline().split()
    assert namespaces().issuperset(networks)
    program.stdin.write("end\n")
    program.stdin.close()
    program.wait(30)
    assert until(lambda: is_gone(directory)), ending
    assert until(lambda: namespaces().isdisjoint(networks)), ending


def test_an_orderly_end_removes_the_directory() -> None:
    program = python(START)
    output, _none = program.communicate(timeout=30)
    assert not Path(output.split()[0]).exists()


def test_a_fork_uses_the_link_and_does_not_end_it() -> None:
    with longwire.link() as link:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                link.near.socket().close()
                link.close()
                code = 0
            finally:
                os._exit(code)
        _pid, status = os.waitpid(child, 0)
        assert status == 0
        link.near.socket().close()
        assert link.near.run(["true"]).returncode == 0


def test_a_directory_of_a_killed_python_is_removed_by_the_next_link() -> None:
    program = python(START + "os.kill(os.getpid(), signal.SIGKILL)")
    output, _none = program.communicate(timeout=30)
    directory = output.split()[0]
    assert program.returncode == -signal.SIGKILL
    assert until(lambda: is_gone(directory))
    longwire.link().close()
    assert not Path(directory).exists()


def test_a_link_that_nothing_refers_to_ends_and_leaves_no_directory() -> None:
    link = longwire.link()
    directory = link._directory.path
    del link
    gc.collect()
    assert until(lambda: is_gone(directory))
    assert not Path(directory).exists()
