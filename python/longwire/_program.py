"""Finding the program."""

from __future__ import annotations

import os
import shutil
import sysconfig

from .errors import ProgramNotFoundError


def program() -> str:
    """Returns the path of ``longwire``.

    It is that of the environment variable LONGWIRE, else that which this package installed,
    else the first one on PATH.
    """
    named = os.environ.get("LONGWIRE")
    if named:
        if shutil.which(named) is None:
            raise ProgramNotFoundError(
                f"the environment variable LONGWIRE names {named}, which is no program: set it "
                "to the path of longwire, or remove it"
            )
        return named
    for directory in (sysconfig.get_path("scripts"), None):
        found = shutil.which("longwire", path=directory)
        if found is not None:
            return found
    raise ProgramNotFoundError(
        "the program longwire is not installed: `pip install longwire` installs it; "
        "the environment variable LONGWIRE names another one"
    )
