#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks on hosts of their own: hosts.py FUNGI ROOT

Two network namespaces joined by a pair of virtual cards, each with a name, a clock and, in one run, files of its own. The link is cut in
the middle: the run ends with a message within a stated time, and is repeated. Skipped where such namespaces may not be made."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

from mpirun import MPIRUN, leave, place, wait_for

NAMES = [f"fungi{os.getpid()}{side}" for side in "ab"]
ADDRESSES = ["10.231.77.1", "10.231.77.2"]
SILENCE = 15  # seconds after which a rank counts as lost
WITHIN = 40  # seconds until a run whose link was cut has ended
# mpirun itself would wait for the other host for five minutes.
KEEPALIVE = [word for name, value in (("time", 2), ("intvl", 1), ("probes", 3)) for word in ("--mca", f"oob_tcp_keepalive_{name}", value)]


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


@contextlib.contextmanager
def two_hosts():
    if os.geteuid() or not shutil.which("ip"):
        leave("network namespaces need root, and 'ip' of iproute2")
    try:
        for name in NAMES:
            ip("netns", "add", name)
        ip("link", "add", "card-a", "netns", NAMES[0], "type", "veth", "peer", "name", "card-b", "netns", NAMES[1])
        for name, card, address in zip(NAMES, ("card-a", "card-b"), ADDRESSES):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", card)
            ip("-n", name, "link", "set", card, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield
    except subprocess.CalledProcessError as error:
        leave(f"network namespaces cannot be made here: {error.stderr.strip()}")
    finally:
        for name in NAMES:
            ip("netns", "del", name, check=False)


def wait_for_link():
    """A card that came up answers only after its link is noticed on both sides; mpirun tries to connect once."""
    knock = "import socket, sys; sys.exit(socket.socket().connect_ex((sys.argv[1], 9)) not in (0, 111))"  # refused: somebody is there
    for name, address in zip(NAMES, reversed(ADDRESSES)):
        for _ in range(100):
            if ip("netns", "exec", name, "timeout", "2", sys.executable, "-c", knock, address, check=False).returncode == 0:
                break
            time.sleep(0.1)
        else:
            raise AssertionError(f"{name} does not reach {address}, though its link is up again")


def host(name, *command, hidden=None):
    """A command on a host: its own network and name, a clock that is two days ahead, and perhaps an empty folder in place of ours."""
    hide = f"mount -t tmpfs none '{hidden}' && " if hidden else ""
    clock = ["--time", "--monotonic", "172800", "--boottime", "172800"] if name == NAMES[1] else []
    return ["ip", "netns", "exec", name, "unshare", "--uts", "--mount", *clock, "--fork", "--kill-child",
            "sh", "-c", f'hostname {name} && {hide}exec "$@"', "sh", *map(str, command)]


def command_of(made, command, hidden=None):
    agent = made.folder / ("agent-hidden" if hidden else "agent")
    words = " ".join(f"'{word}'" for word in host(NAMES[1], "sh", "-c", hidden=hidden))
    agent.write_text(f'#!/bin/sh\nshift\nexec {words} "$*"\n')
    agent.chmod(0o755)
    return host(NAMES[0], *MPIRUN, "-n", 2, "-H", ",".join(f"{a}:1" for a in ADDRESSES), "--mca", "plm_rsh_agent", agent,
                "--mca", "btl", "tcp,self", "--mca", "pml", "ob1", "--mca", "btl_tcp_if_include", "10.231.77.0/24",
                "--mca", "oob_tcp_if_include", "10.231.77.0/24", *KEEPALIVE, "-x", "FUNGI_RANK_TIMEOUT", *command)


def main():
    with two_hosts(), place(*sys.argv[1:3]) as made:
        made.env["FUNGI_RANK_TIMEOUT"] = str(SILENCE)
        stores = made.folder / "stores"
        stores.mkdir()
        wait_for_link()
        made.run(made.extract("whole"))
        made.run(command_of(made, made.extract("stores/shared")))
        made.expect_same("whole", "stores/shared", "two hosts, one folder")
        made.run(command_of(made, made.extract("stores/apart", "--gather"), hidden=stores))
        made.expect_same("whole", "stores/apart", "two hosts, no folder of both")
        said = made.run(command_of(made, made.extract("stores/noticed"), hidden=stores), status=None)[1]
        assert "--gather" in said and f"rank 1 on {NAMES[1]}" in said, said
        print("two hosts: the bytes of one process, with and without a shared folder")

        command = command_of(made, made.extract("stores/cut", limit=400))
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=made.env)
        try:
            assert wait_for(lambda: (stores / "cut/rows-00002.jsonl").exists(), process), process.communicate()
            ip("-n", NAMES[0], "link", "set", "card-a", "down")
            begin = time.monotonic()
            _, said = process.communicate(timeout=WITHIN)
        finally:
            if process.poll() is None:
                process.kill()
        assert process.returncode != 0
        assert f"rank 1 on {NAMES[1]} has been silent" in said or "lost communication with a remote daemon" in said, said
        print(f"a link that was cut: the run ended after {time.monotonic() - begin:.1f} seconds")
        ip("-n", NAMES[0], "link", "set", "card-a", "up")
        wait_for_link()
        kept = len(list((stores / "cut").glob("rows-*")))
        assert kept >= 3
        made.run(command_of(made, made.extract("stores/cut", limit=400)))
        made.run(made.extract("whole400", limit=400))
        made.expect_same("whole400", "stores/cut", "after the link was cut")


if __name__ == "__main__":
    main()
