"""PostgreSQL over 80 ms: one query per row, or a pipeline."""

import glob
import os
import shutil
import subprocess
from pathlib import Path
from typing import Iterator

import pytest
from conftest import printed, until_listens

import longwire

CLIENT = """
import time
import psycopg

with psycopg.connect("host=far user=postgres dbname=postgres", autocommit=True) as connection:
    connection.execute("create table item (number int)")
    start = time.monotonic()
    for number in range(5):
        connection.execute("insert into item values (%s)", (number,))
    one_by_one = time.monotonic() - start
    start = time.monotonic()
    with connection.pipeline():
        for number in range(5):
            connection.execute("insert into item values (%s)", (number,))
    print(one_by_one, time.monotonic() - start)
    assert connection.execute("select count(*) from item").fetchone() == (10,)
"""


def program(name: str) -> str:
    """Returns the path of a PostgreSQL program; Debian keeps these out of PATH."""
    found = shutil.which(name) or next(iter(glob.glob(f"/usr/lib/postgresql/*/bin/{name}")), None)
    if found is None:
        if "CI" in os.environ:
            raise FileNotFoundError(name)
        pytest.skip(f"needs {name} (Debian: postgresql)")
    return found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    """A PostgreSQL cluster. Its programs refuse to run as root, so they run as another user."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    if os.getuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
        for parent in [tmp_path, *tmp_path.parents][:3]:
            parent.chmod(parent.stat().st_mode | 0o011)
    words = as_user([program("initdb"), "-D", str(folder), "-U", "postgres", "-A", "trust", "-N"])
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd="/")
    with open(folder / "pg_hba.conf", "a") as access:
        access.write("host all all 10.77.0.0/16 trust\nhost all all fd77::/16 trust\n")
    yield folder


def as_user(words: "list[str]") -> "list[str]":
    if os.getuid() != 0:
        return words
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *words]


@pytest.mark.needs("psycopg")
@pytest.mark.link(delay="40ms")
def test_a_pipeline_saves_round_trips(link: longwire.LiveLink, cluster: Path) -> None:
    words = [program("postgres"), "-D", str(cluster), "-h", "*", "-k", str(cluster)]
    link.far.popen(as_user(words), stderr=subprocess.DEVNULL, cwd="/")
    until_listens(link, 5432)
    one_by_one, pipeline = map(float, printed(link, "-c", CLIENT).split())
    assert one_by_one >= 5 * 0.080
    assert 0.080 <= pipeline < one_by_one / 2
