# SPDX-License-Identifier: Apache-2.0
"""The program `fungi`, which comes with the module."""
from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

from fungi import _fungi
from fungi._errors import Error


def command() -> str:
    """Where it is: in the package, or, of a build, beside the folder of the package."""
    here = os.path.dirname(os.path.abspath(_fungi.__file__))
    for where in (os.path.join(here, "bin", "fungi"), os.path.join(here, "..", "..", "fungi")):
        if os.path.isfile(where) and os.access(where, os.X_OK):
            return os.path.normpath(where)
    import shutil  # here: importing fungi shall be quick

    found = shutil.which("fungi")
    if found is None:
        raise Error("the program fungi is not there", "fungi", "install the package again")
    return found


_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
_RENAMED = {"set": "facts"}

PARTIAL = 3  # done, but for some, of which the JSON tells


def error_of(verb: str, lines: list[str], arguments: bool = True) -> Error:
    """What it said on stderr before it ended, with options as arguments."""
    said = next((line for line in lines if line.startswith("fungi: ")), lines[0] if lines else "it failed")
    hint = next((line.strip().removeprefix("hint: ") for line in lines if line.strip().startswith("hint: ")), "")
    if arguments:
        said, hint = (_OPTION.sub(lambda o: _RENAMED.get(o[1], o[1].replace("-", "_")), text) for text in (said, hint))
    return Error(said.removeprefix("fungi: "), f"fungi {verb}", hint)


def run(words: list[str], arguments: bool = True) -> Any:
    """Its JSON; its message as an exception, in which options are arguments."""
    import subprocess

    done = subprocess.run([command(), *words], capture_output=True, text=True, check=False)
    if done.returncode and not (done.returncode == PARTIAL and done.stdout.strip()):
        raise error_of(words[0], done.stderr.strip().splitlines(), arguments)
    return json.loads(done.stdout)


def main() -> None:
    program = command()
    os.execv(program, [program, *sys.argv[1:]])
