# SPDX-License-Identifier: Apache-2.0
"""The verb serve: a server in a process of its own."""
from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import IO

from fungi import _command
from fungi._common import PathLike, count, path, seconds, size, threads as threads_of
from fungi._errors import InputError


class Server:
    """A server that runs until stop(), the end of a `with`, or the end of this program."""

    def __init__(self, process: subprocess.Popen[str], url: str, said: IO[str]) -> None:
        self._process = process
        self._said = said
        self.url = url

    @property
    def notes(self) -> list[str]:
        """What the server has said so far, such as that a model is not where it was."""
        self._said.seek(0)
        return self._said.read().splitlines()

    def stop(self, timeout: float = 60) -> None:
        """Whoever has asked is answered first."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def __del__(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()

    def __repr__(self) -> str:
        return f"Server({self.url})"


def _list(given: PathLike | Iterable[PathLike | None] | None, name: str) -> list[str]:
    if given is None:
        return []
    if isinstance(given, (str, bytes)) or hasattr(given, "__fspath__"):
        return [path(given, name)]  # type: ignore[arg-type]
    return ["none" if one is None else path(one, name) for one in given]


def serve(stores: PathLike | Sequence[PathLike], *, data: PathLike | Iterable[PathLike | None] | None = None, split: str = "",
          hop: float = 0, text_column: str = "", label_column: str = "", id_column: str = "",
          model: PathLike | Iterable[PathLike | None] | None = None, listen: str = "127.0.0.1", port: int = 0,
          token_file: PathLike | None = None, certificate: PathLike | None = None, key: PathLike | None = None,
          allow_origin: str | Iterable[str] = (), queue: int = 256, batch: int = 64, body_limit: int = 32, connections: int = 1500,
          memory: int | str = 0, threads: int = 0) -> Server:
    """Serves stores or indices over HTTP: search, features in the shape of OpenAI's embeddings, and a page. port=0: a free one.

    >>> import fungi, json, urllib.request
    >>> with fungi.serve(train) as server:
    ...     answer = json.load(urllib.request.urlopen(server.url + "/v1/stores"))
    >>> answer["stores"][0]["rows"]
    60
    """
    names = _list(stores, "stores")
    if not names:
        raise InputError("expected a store or an index, found none", "stores", "")
    words = ["serve", *names, "--json", "--listen", listen, "--port", str(count(port, "port"))]
    for name, values in (("data", _list(data, "data")), ("model", _list(model, "model")),
                         ("allow-origin", [allow_origin] if isinstance(allow_origin, str) else list(allow_origin))):
        if values:
            words += [f"--{name}", *values]
    for name, text in (("split", split), ("text-column", text_column), ("label-column", label_column), ("id-column", id_column)):
        if text:
            words += [f"--{name}", text]
    for name, file in (("token-file", token_file), ("certificate", certificate), ("key", key)):
        if file is not None:
            words += [f"--{name}", path(file, name)]
    for name, number in (("queue", queue), ("batch", batch), ("body-limit", body_limit), ("connections", connections)):
        words += [f"--{name}", str(count(number, name, 1))]
    if hop:
        words += ["--hop", str(seconds(hop, "hop"))]
    if memory:
        words += ["--memory", str(size(memory, "memory"))]
    if threads_of(threads):
        words += ["--threads", str(threads_of(threads))]
    # A pipe that nobody reads would stop a server that has much to say.
    said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
    process = subprocess.Popen([_command.command(), *words], stdout=subprocess.PIPE, stderr=said, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.wait()
        process.stdout.close()
        said.seek(0)
        with said:
            raise _command.error_of("serve", said.read().strip().splitlines())
    return Server(process, json.loads(line)["url"], said)
