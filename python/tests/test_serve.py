# SPDX-License-Identifier: Apache-2.0
"""fungi.serve, asked by programs that others wrote: curl, OpenAI's client, schemathesis."""
from __future__ import annotations

import base64
import json
import pathlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fungi
from conftest import cli_json

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
         "--generation-database", "none", "--request-timeout", "30", "--suppress-health-check", "all", "--checks",
         "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=200)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_killed_and_started_again(data):
    server = fungi.serve(data.train)
    port = int(server.url.rsplit(":", 1)[1])
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
