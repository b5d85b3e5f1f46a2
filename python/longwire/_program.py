"""Locates the program."""

from __future__ import annotations

import os
import shutil
import sysconfig

from .errors import ProgramNotFoundError


def program() -> str:
    """Returns the path of ``longwire``: the environment variable LONGWIRE, else the program
    installed with this package, else the first on PATH.
    """
    named = os.environ.get("LONGWIRE")
    if named:
        if shutil.which(named) is None:
            raise ProgramNotFoundError(
                f"the environment variable LONGWIRE names {named}, which is not a program; set it "
                "to the path of longwire, or remove it"
            )
        return named
    for directory in (sysconfig.get_path("scripts"), None):
        found = shutil.which("longwire", path=directory)
        if found is not None:
            return found
    raise ProgramNotFoundError(
        "longwire is not installed; run `pip install longwire`, or set "
        "the environment variable LONGWIRE"
    )
