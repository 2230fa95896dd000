# SPDX-License-Identifier: Apache-2.0
"""fungi.serve, asked by programs that others wrote: curl, OpenAI's client, schemathesis."""
from __future__ import annotations

import base64
import http.client
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fungi
from conftest import ROOT, cli_json
from fungi._command import command

PICTURE = "demo/images/test/coat"


@pytest.fixture(scope="module")
def served(data: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(data.train_pictures, folder / "pictures")  # no links: what lies elsewhere is not shown
    fungi.index(data.train, folder / "graph", kind="hnsw", pca=6)
    try:
        with fungi.serve([data.train, data.test, folder / "graph"], data=[folder / "pictures", None, None]) as server:
            yield server
    except fungi.Error as error:
        if "has no server" in str(error):
            pytest.skip(str(error))
        raise


def curl(url: str, *words: str) -> Any:
    if not shutil.which("curl"):
        pytest.skip("there is no curl")
    return json.loads(subprocess.run(["curl", "-s", "--max-time", "60", *words, url], capture_output=True, check=True).stdout)


def picture() -> pathlib.Path:
    return sorted(pathlib.Path(PICTURE).iterdir())[0]


def test_curl_finds_what_search_finds(data, served):
    file = picture()
    for features in ("embedding", "embedding+kl", "all"):
        words = [] if features == "all" else ["--features", features]
        theirs = cli_json("search", data.train, "--image", file, "-k", 5, *words)["queries"][0]["neighbours"]
        ours = curl(served.url + "/v1/search", "-F", f"file=@{file}", "-F", f"features={features}", "-F", "k=5")
        assert ours["searches"][0]["neighbours"] == theirs
    row = cli_json("search", data.train, "--row", theirs[0]["id"], "-k", 3)["queries"][0]["neighbours"]
    asked = json.dumps({"id": theirs[0]["id"], "k": 3})
    assert curl(served.url + "/v1/search", "-H", "Content-Type: application/json", "-d", asked)["searches"][0]["neighbours"] == row


def test_the_module_finds_the_same(data, served):
    files = sorted(pathlib.Path(PICTURE).iterdir())[:4]
    found = fungi.search(data.train, images=files, k=6)
    for file, query in zip(files, found.queries, strict=True):
        theirs = curl(served.url + "/v1/search", "-F", f"file=@{file}", "-F", "k=6")["searches"][0]["neighbours"]
        assert [(one["row"], one["distance"]) for one in theirs] == [(one.row, one.value) for one in query.neighbours]


def test_openai(data, served):
    openai = pytest.importorskip("openai", reason="the package openai is not there")
    client = openai.OpenAI(base_url=served.url + "/v1", api_key="none", max_retries=0)
    assert [model.id for model in client.models.list()] == ["train", "test", "graph"]
    files = sorted(pathlib.Path(PICTURE).iterdir())[:3]
    urls = ["data:image/png;base64," + base64.b64encode(file.read_bytes()).decode() for file in files]
    # Without a name, simclr draws other crops than those of the files; what draws nothing is the same.
    rows = np.asarray(fungi.Extractor(like=data.train).transform([str(file) for file in files]))[:, :256]
    for features, wanted in (("embedding+kl", rows), ("embedding", rows[:, :128])):
        theirs = client.embeddings.create(model="train", input=urls, extra_body={"features": features})
        again = client.embeddings.create(model="train", input=urls, encoding_format="float", extra_body={"features": features})
        got = np.array([item.embedding for item in theirs.data], np.float32)
        assert np.array_equal(got, np.array([item.embedding for item in again.data], np.float32))
        assert np.array_equal(got, wanted), features
    short = client.embeddings.create(model="graph", input=urls[0], dimensions=4)
    whole = client.embeddings.create(model="graph", input=urls[0])
    assert len(whole.data[0].embedding) == 6 and short.data[0].embedding == whole.data[0].embedding[:4]
    with pytest.raises(openai.BadRequestError, match="tokens"):
        client.embeddings.create(model="train", input=[[1, 2]])
    with pytest.raises(openai.NotFoundError, match="there is no store"):
        client.embeddings.create(model="gpt", input=urls[0])


def test_schemathesis(served, tmp_path):
    pytest.importorskip("schemathesis", reason="the package schemathesis is not there")
    done = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "run", served.url + "/openapi.json", "--max-examples", "15", "--seed", "1",
         "--generation-database", "none", "--request-timeout", "30", "--suppress-health-check", "all", "--checks", "all",
         # A text is a right question to some stores, and not to one of pictures (422).
         "--exclude-checks", "positive_data_acceptance"],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=200)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def ask(server: Any, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> tuple[int, Any]:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=120)
    connection.request(method, path, body, {"Content-Type": kind})
    reply = connection.getresponse()
    said = json.loads(reply.read())
    connection.close()
    return reply.status, said


def upload(server: Any, bytes_of_file: bytes, **fields: str) -> tuple[int, Any]:
    parts = [f'--XX\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
    parts.append(b'--XX\r\nContent-Disposition: form-data; name="file"; filename="query.png"\r\n\r\n' + bytes_of_file + b"\r\n--XX--\r\n")
    return ask(server, "POST", "/v1/search", b"".join(parts), "multipart/form-data; boundary=XX")


def bomb(side: int) -> bytes:
    """A PNG of so many pixels, of one colour: a few kilobytes."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big")

    deflate = zlib.compressobj(9)
    rows = b"".join(deflate.compress(bytes(side * 3 + 1)) for _ in range(side)) + deflate.flush()
    head = side.to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def peak(server: Any) -> int:
    """Kilobytes that the server has taken at most."""
    text = pathlib.Path(f"/proc/{server._process.pid}/status").read_text(encoding="utf-8")
    return int(text.split("VmHWM:")[1].split()[0])


def test_bombs_take_no_memory(data):
    small, huge = bomb(1000), bomb(10_000)
    assert len(huge) < 1_000_000
    with fungi.serve(data.train) as server:
        assert upload(server, small)[0] == 200
        before = peak(server)
        for _ in range(5):
            status, said = upload(server, huge)
            assert status == 422 and "pixels" in said["error"]["message"]
            url = "data:image/png;base64," + base64.b64encode(huge).decode()
            assert ask(server, "POST", "/v1/embeddings", json.dumps({"input": url}).encode())[0] == 422
        assert peak(server) < before + 50_000, "kilobytes"
        assert upload(server, small)[0] == 200


def test_no_byte_is_written(data, served, tmp_path):
    """So that a full disk does not matter: no file of this process may take a single byte."""

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    with subprocess.Popen([command(), "serve", data.train, "--data", data.train_pictures, "--port", "0", "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, preexec_fn=full, cwd=tmp_path,
                          env={**os.environ, "TMPDIR": str(tmp_path / "none")}) as process:
        assert process.stdout is not None
        server = type("Full", (), {"url": json.loads(process.stdout.readline())["url"]})
        try:
            bytes_of_file = picture().read_bytes()
            theirs = upload(served, bytes_of_file, store="train")
            assert theirs[0] == 200 and upload(server, bytes_of_file, store="train") == theirs
            assert upload(server, bomb(2000))[0] == 200
            for path in ("/v1/map?layout=neighbours&k=3", "/v1/gains?k=3"):
                assert ask(server, "GET", path)[0] == 200
        finally:
            process.terminate()


def test_a_model_that_is_replaced(data, tmp_path):
    model, question = tmp_path / "model", picture().read_bytes()
    shutil.copytree(ROOT / "demo", model, ignore=shutil.ignore_patterns("images"))
    weights = model / "model.safetensors"
    right = weights.read_bytes()
    with fungi.serve(data.train, model=model) as server:
        theirs = upload(server, question)
        assert theirs[0] == 200
        weights.write_bytes(right[: len(right) // 2])  # over the one that was opened, and cut short
        assert upload(server, question) == theirs
        weights.unlink()
        assert upload(server, question) == theirs
    for wrong in (b"no weights", right[:-4] + b"abcd"):
        weights.write_bytes(wrong)
        with fungi.serve(data.train, model=model) as server:
            assert any("rows can be searched" in note for note in server.notes)
            status, said = upload(server, question)
            assert status == 503 and said["error"]["message"]
            assert ask(server, "POST", "/v1/search", b'{"row": 0}')[0] == 200
            weights.write_bytes(right)  # it is looked for again
            assert upload(server, question) == theirs


def test_a_model_of_the_hub(data, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    commit = "0123456789" * 4
    place = tmp_path / "hub/models--some--model"
    shutil.copytree(ROOT / "demo", place / "snapshots" / commit, ignore=shutil.ignore_patterns("images"))
    (place / "refs").mkdir()
    (place / "refs/main").write_text(commit, encoding="utf-8")
    with fungi.serve(data.train, model="hf:some/model") as server:
        assert ask(server, "GET", "/v1/stores")[1]["stores"][0]["takes_samples"]
        assert not server.notes
    with pytest.raises(fungi.Error, match="was not pulled"):
        fungi.serve(data.train, model="hf:other/model")


def test_killed_and_started_again(data):
    server = fungi.serve(data.train)
    port = int(server.url.rsplit(":", 1)[1])
    asking = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(20)]
    for one in asking:  # in the middle of something
        one.request("POST", "/v1/search", b'{"row": 0}', {"Content-Type": "application/json"})
    server._process.send_signal(signal.SIGKILL)
    server._process.wait()
    server.stop()
    with fungi.serve(data.train, port=port) as again:
        assert curl(again.url + "/healthz")["status"] == "ok"
        with pytest.raises(fungi.Error, match="another program has it"):
            fungi.serve(data.train, port=port)
    with pytest.raises(fungi.Error, match="token_file"):
        fungi.serve(data.train, listen="0.0.0.0")
    with pytest.raises(fungi.Error):
        fungi.serve("no/such/store")
