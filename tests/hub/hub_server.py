#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model hub on loopback, and the host that keeps its large files: hub_server.py FOLDER

Models are folders FOLDER/models/ORG/NAME of files; `trouble.json` in one of them, {"file": "what", ...}, says what goes wrong with a
file, and how. Large files (all but .json and .txt) are redirected to the second port. Writes its ports to FOLDER/ports, and to FOLDER/log
a line of JSON for every request. It also answers as a proxy for the host hub.test."""
import hashlib
import http.server
import json
import pathlib
import re
import sys
import threading
import time
import urllib.parse

folder = pathlib.Path(sys.argv[1])
lock, asked, ports = threading.Lock(), {}, []
COMMIT, OLD_COMMIT = "c0ffee" + "0" * 34, "0ld".replace("l", "1").replace("0", "a") + "0" * 37
assert re.fullmatch("[0-9a-f]{40}", COMMIT) and re.fullmatch("[0-9a-f]{40}", OLD_COMMIT)


def git_sum(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def is_large(name):
    return not name.endswith((".json", ".txt"))


class Hub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, status, body=b"", length=None, cut=None, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.close_connection = True

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path  # a proxy is asked for whole addresses
        second = self.server.server_address[1] == ports[1]
        with lock:
            count = asked[path] = asked.get(path, 0) + 1
            with open(folder / "log", "a") as log:
                log.write(json.dumps({"asked": self.path, "token": self.headers.get("Authorization", ""), "second": second,
                                      "range": self.headers.get("Range", "")}) + "\n")
        path = urllib.parse.unquote(path)
        if second:
            return self.content(path.removeprefix("/store/"), count)
        if found := re.fullmatch(r"/api/models/(.+)/revision/(.+)", path):
            return self.listing(*found.groups(), count)
        if found := re.fullmatch(r"/(\w+/[\w.-]+)/resolve/(\w+)/(.+)", path):
            return self.resolve(*found.groups(), count)
        self.send(404)

    def may(self, model):
        """Whether this client may have it, of those that not everybody may."""
        token = self.headers.get("Authorization", "")
        if model.startswith("gated/") and token != "Bearer hf_good":
            self.send(403 if token else 401, X_Error_Code="GatedRepo", X_Error_Message=f"Access to {model} is restricted, {token}")
            return False
        if model.startswith("private/") and token != "Bearer hf_good":
            self.send(401, X_Error_Code="RepoNotFound", X_Error_Message="Invalid username or password.")
            return False
        return True

    def listing(self, model, revision, count):
        place = folder / "models" / model
        if model == "busy/always":
            return self.send(429, Retry_After="3600")
        if model == "busy/once" and count == 1:
            return self.send(429, Retry_After="1")
        if model == "busy/broken" and count < 3:
            return self.send(502, b"<html>bad gateway</html>")
        if model == "odd/html":
            return self.send(200, b"<html>a page to log in</html>")
        if model == "odd/endless":
            return self.send(302, Location=self.path)
        if model == "odd/file":
            return self.send(302, Location="file:///etc/passwd")
        if model == "old/name":
            return self.send(307, Location=f"/api/models/plain/model/revision/{revision}?blobs=true")
        if model.startswith("private/") and not self.may(model):
            return None
        if not place.is_dir():
            return self.send(404, X_Error_Code="RepoNotFound", X_Error_Message="Repository not found")
        commits = {"main": COMMIT, COMMIT: COMMIT, "v1": OLD_COMMIT, "refs/pr/1": OLD_COMMIT, OLD_COMMIT: OLD_COMMIT}
        if revision not in commits:
            return self.send(404, X_Error_Code="RevisionNotFound", X_Error_Message=f"Invalid rev id: {revision}")
        files = []
        for file in sorted(p for p in place.rglob("*") if p.is_file() and p.name not in ("trouble.json", "names.json")):
            data, name = file.read_bytes(), file.relative_to(place).as_posix()
            one = {"rfilename": name, "size": len(data), "blobId": git_sum(data)}
            if is_large(name):
                one["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
            if self.trouble(model).get(name) == "no blobs":
                one = {"rfilename": name}
            files.append(one)
        names = place / "names.json"
        files += [{"rfilename": name, "size": 3, "blobId": "0" * 40} for name in (json.loads(names.read_text()) if names.exists() else [])]
        return self.send(200, json.dumps({"id": model, "sha": commits[revision], "siblings": files}).encode())

    def trouble(self, model):
        file = folder / "models" / model / "trouble.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def resolve(self, model, commit, name, count):
        if not self.may(model):
            return None
        if model == "old/name":
            return self.send(307, Location=f"/plain/model/resolve/{commit}/{name}")
        file = folder / "models" / model / name
        if not file.is_file():
            return self.send(404, X_Error_Code="EntryNotFound", X_Error_Message="Entry not found")
        data = file.read_bytes()
        if not is_large(name):
            return self.content(f"{model}/{name}", count, X_Repo_Commit=commit, ETag=f'"{git_sum(data)}"')
        etag = hashlib.sha256(b"changed" if self.trouble(model).get(name) == "other etag" else data).hexdigest()
        commit = "b" * 40 if self.trouble(model).get(name) == "other commit" else commit
        return self.send(302, Location=f"http://127.0.0.1:{ports[1]}/store/{model}/{urllib.parse.quote(name)}?signed=1",
                         X_Repo_Commit=commit, X_Linked_Etag=f'"{etag}"', X_Linked_Size=str(len(data)))

    def content(self, name, count, **headers):
        model, file = "/".join(name.split("/")[:2]), "/".join(name.split("/")[2:])
        data = (folder / "models" / name).read_bytes()
        what = self.trouble(model).get(file, "")
        start, status = 0, 200
        if (found := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))) and what != "no ranges":
            start, status = int(found[1]), 206
            if start >= len(data):
                return self.send(416, Content_Range=f"bytes */{len(data)}")
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        body = data[start:]
        if what == "wrong" or what == "wrong once" and count == 1:
            body = bytes([body[0] ^ 1]) + body[1:]
        if what == "grows":
            body += b"more"
        if what in ("cut", "no ranges") and count <= 3 and len(body) > 2:
            return self.send(status, body, cut=len(body) // 3, **headers)
        if what == "stall" and count == 1:
            self.send(status, body, cut=len(body) // 3, **headers)
            return time.sleep(30)
        if what == "short":  # the end, without a word about it
            body = body[:len(data) // 2 - start] if start < len(data) // 2 else b""
        if what == "busy" and count <= 2:
            return self.send(503)
        if what == "slow":  # so that it can be killed on the way
            self.send(status, body, cut=0, **headers)
            for at in range(0, len(body), 4096):
                self.wfile.write(body[at:at + 4096])
                time.sleep(0.02)
            return None
        return self.send(status, body, **headers)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):  # a client that is gone
        pass


servers = [Server(("127.0.0.1", 0), Hub) for _ in range(2)]
ports += [server.server_address[1] for server in servers]
(folder / "ports.tmp").write_text(" ".join(map(str, ports)))
(folder / "ports.tmp").rename(folder / "ports")
threading.Thread(target=servers[1].serve_forever, daemon=True).start()
servers[0].serve_forever()
