#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which small mistakes would no test notice? Changes one token at a time and runs the room's tests.

  tools/mutate.py search pca           40 changes in each of these rooms
  tools/mutate.py fungi/pca/pca.cpp    40 changes in this file
  tools/mutate.py --again search       the unnoticed changes once more: do new tests notice them?

The sources stay as they are: a changed copy is compiled into an object of its own, which stands before the library when
the test program is linked, so that the linker takes nothing of the library's. Results are kept in BUILD/mutate.jsonl:
what is there is not tried again, so that an interrupted run goes on, and one with more --changes adds to it. A change
that does not compile, or gives the same object, does not count; one whose tests crash or do not end is noticed."""
import argparse
import bisect
import collections
import contextlib
import json
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_OBJECTS = 12  # of a header: those that more objects include take too long
MEMORY = 12 << 30  # bytes of address space of a test program
RUN_PROGRAM = ("test_report", "test_app")  # the changed command line
COUNTED = ("noticed", "mended", "unnoticed")

# What may stand between the parts of a text that are no code.
NO_CODE = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<raw>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)")
    |(?P<line>^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)
    |(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<kept>\w[\w']*)|(?P<letter>'(?:[^'\\\n]|\\.)+')""",
    re.VERBOSE | re.DOTALL | re.MULTILINE)

# Binary operators stand between blanks, other than the brackets of templates and the marks of references.
BINARY = {
    "arithmetic": {"+": "-", "-": "+", "*": "/+", "/": "*", "%": "/"},
    "order": {"<": ("<=", ">"), "<=": ("<", ">"), ">": (">=", "<"), ">=": (">", "<")},
    "equality": {"==": ("!=",), "!=": ("==",)},
    "logic": {"&&": ("||",), "||": ("&&",)},
    "bits": {"&": "|", "|": "&", "^": "|", "<<": (">>",), ">>": ("<<",)},
    "compound": {"+=": ("-=", "="), "-=": ("+=",), "*=": ("/=",), "/=": ("*=",), "|=": ("&=",), "&=": ("|=",)},
}
PAIRS = [("min", "max"), ("rows", "cols"), ("front", "back"), ("floor", "ceil"), ("lower_bound", "upper_bound"),
         ("any_of", "all_of"), ("first", "second"), ("min_element", "max_element")]
OTHER_NAME = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}
NUMBER = re.compile(r"(?<![\w.'<])(\d+)(\.\d*)?(e-?\d+)?([fuz]?)(?![\w.'>])")
ASSIGNMENT = r"\w[\w.:\[\]()>-]* (?:[-+*/|&^%]|<<|>>)?=(?!=) [^;]*|(?:\+\+|--)[^;]*"
STATEMENT = re.compile(
    rf"^[ ]+((?!return|throw|delete|using|static_assert)(?:{ASSIGNMENT}|(?:\w|\.|::|->)+\([^;]*\));)$", re.MULTILINE)
BEFORE_STATEMENT = (";", "{", "}", ")", "else", ":")

Change = collections.namedtuple("Change", "file line column before after")  # texts of the whole line


def masked(text: str) -> str:
    """The same length and lines, with blanks for what is no code and underscores inside strings."""
    def cover(match: re.Match) -> str:
        found = match.group()
        if match["kept"]:
            return found
        inside = "_" if match["text"] or match["letter"] or match["raw"] else " "
        covered = re.sub(r"[^\n]", inside, found)
        return '"' + covered[1:-1] + '"' if inside == "_" else covered
    return NO_CODE.sub(cover, text)


def numbers_beside(match: re.Match) -> list[str]:
    whole, part, power, suffix = match.groups()
    if part or power or suffix == "f":
        value = float(whole + (part or "") + (power or ""))
        return [repr(2 * value if value else 1.0) + suffix]
    return [f"{n}{suffix}" for n in (int(whole) + 1, int(whole) - 1) if n >= 0]


def guards(code: str):
    """The conditions of `if (...)`, where nothing is declared in them."""
    for match in re.finditer(r"\bif \(", code):
        depth, end = 1, match.end()
        while end < len(code) and depth:
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        condition = code[match.end() : end - 1]
        if not re.search(r";| = |\n", condition):
            yield match.end(), end - 1


def edits(code: str) -> dict[str, list[tuple[int, int, str]]]:
    """By kind: from, to, and what stands there instead."""
    found = collections.defaultdict(list)
    for kind, table in BINARY.items():
        for match in re.finditer(r"(?<=[\w)\]}\"] )[-+*/%<>=!&|^]+(?=\s)", code):
            found[kind] += [(*match.span(), new) for new in table.get(match.group(), ())]
    for match in re.finditer(r"(?<![\w!])!(?=[\w(])", code):
        found["not"].append((*match.span(), ""))
    for match in re.finditer(r"\b(?:true|false)\b", code):
        found["truth"].append((*match.span(), "false" if match.group() == "true" else "true"))
    for match in NUMBER.finditer(code):
        found["number"] += [(*match.span(), new) for new in numbers_beside(match)]
    for match in re.finditer(r"\b(break|continue);", code):
        found["leaving"].append((*match.span(), "continue;" if match[1] == "break" else "break;"))
    for match in re.finditer(r"(?<=\w\()(\w+), (\w+)(?=[,)])", code):
        if match[1] != match[2]:
            found["arguments"].append((*match.span(), f"{match[2]}, {match[1]}"))
    for match in re.finditer(r"\b[a-z_]+\b", code):
        if match.group() in OTHER_NAME and not code.startswith("{", match.end()):
            found["name"].append((*match.span(), OTHER_NAME[match.group()]))
    for match in STATEMENT.finditer(code):
        if code[: match.start()].rstrip().endswith(BEFORE_STATEMENT):
            found["assignment" if "=" in match[1] or "(" not in match[1] else "call"].append((*match.span(1), ";"))
    found["guard"] = [(begin, end, "false") for begin, end in guards(code)]
    return found


def changes_of(file: pathlib.Path) -> dict[str, list[Change]]:
    text = file.read_text()
    lines, starts = text.split("\n"), [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    out = {}
    for kind, found in edits(masked(text)).items():
        out[kind] = []
        for begin, end, new in found:
            at = bisect.bisect_right(starts, begin) - 1
            line, column = lines[at], begin - starts[at]
            if end <= starts[at] + len(line):
                after = line[:column] + new + line[end - starts[at] :]
                out[kind].append(Change(str(file.relative_to(ROOT)), at + 1, column, line, after))
    return out


def applied(change: Change) -> str | None:
    """The changed text; nothing where the line is no longer there. Lines may have moved."""
    lines = (ROOT / change.file).read_text().split("\n")
    places = [i for i, line in enumerate(lines) if line == change.before]
    if not places:
        return None
    at = min(places, key=lambda i: abs(i + 1 - change.line))
    lines[at] = change.after
    return "\n".join(lines)


class Build:
    """The folder with unchanged objects, and what is made of them."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.mutant, self.scratch = folder, folder / "mutant", folder / "scratch"
        self.whole = folder / "fungi.whole"  # the unchanged command line, while another stands in its place
        self.restore_program()
        if not (folder / "build.ninja").exists():
            subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"], check=True,
                           stdout=subprocess.DEVNULL)

    def ninja(self, *words: str) -> str:
        run = subprocess.run(["ninja", "-C", self.folder, *words], text=True, capture_output=True)
        if run.returncode:
            sys.exit(run.stdout[-3000:] + run.stderr[-3000:])
        return run.stdout

    def make(self, programs: list[str]) -> None:
        """Objects, and programs linked of them: no target, which would bring other rooms' tests with it."""
        self.ninja("-j1", "libfungi.a")
        self.commands = {}
        for entry in json.loads((self.folder / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            self.commands[words[words.index("-o") + 1]] = words
        parts = tuple(f"CMakeFiles/{program}.dir/" for program in programs)
        self.ninja("-j1", *(name for name in self.commands if name.startswith(parts)),
                   *["fungi"] * any(program in RUN_PROGRAM for program in programs))
        self.dependencies = {}  # of objects: files of this repository
        for block in self.ninja("-t", "deps").split("\n\n"):
            head, *names = block.strip().split("\n")
            own = (os.path.normpath(self.folder / name.strip()) for name in names)
            self.dependencies[head.split(":")[0]] = {os.path.relpath(n, ROOT) for n in own if n.startswith(str(ROOT))}
        self.links = {name: shlex.split(self.ninja("-t", "commands", name).rstrip().split("\n")[-1])[2:-2]
                      for name in ["fungi", *programs]}
        self.unchanged = {}
        for program in programs:
            self.link(program, "", [], [], self.folder / program)

    def objects_of(self, file: str, program: str) -> list[str]:
        """Those that a change of this file reaches."""
        parts = ["fungi.dir", f"{program}.dir"] + ["fungi-cli.dir"] * (program in RUN_PROGRAM)
        return sorted(name for name in self.commands if file in self.dependencies.get(name, ())
                      and name.split("/")[1] in parts)

    def compile(self, file: str, text: str, objects: list[str]) -> list[pathlib.Path] | None:
        shutil.rmtree(self.mutant, ignore_errors=True)
        copy = self.mutant / "include" / file
        copy.parent.mkdir(parents=True)
        copy.write_text(text)
        made = []
        for name in objects:
            words = [str(copy) if word == str(ROOT / file) else word for word in self.commands[name]]
            made.append(self.mutant / name.replace("/", "_"))
            words[words.index("-o") + 1] = str(made[-1])
            quick = ["-O1"] if "-O2" in words and "-O3" not in words else []
            run = subprocess.run([words[0], f"-I{self.mutant / 'include'}", *words[1:], *quick, "-w"], cwd=self.folder,
                                 capture_output=True)
            if run.returncode:
                return None
        return made

    def is_unchanged(self, file: str, objects: list[str], made: list[pathlib.Path]) -> bool:
        found = [path.read_bytes() for path in made]
        if (file, *objects) not in self.unchanged:
            self.compile(file, (ROOT / file).read_text(), objects)
            self.unchanged[(file, *objects)] = [path.read_bytes() for path in made]
            for path, content in zip(made, found):
                path.write_bytes(content)
        return found == self.unchanged[(file, *objects)]

    def link(self, program: str, file: str, objects: list[str], made: list[pathlib.Path], out: pathlib.Path) -> bool:
        """With the tests of the file's own name first, then those that include it."""
        words = list(self.links[program])
        own = [word for word in words if word.endswith(".o")]

        def distance(name: str) -> tuple:
            same = pathlib.Path(name).name.startswith(f"{pathlib.Path(file).stem}_test.")
            return not same, file.rsplit(".", 1)[0] + ".h" not in self.dependencies[name], len(self.dependencies[name])

        kept = sorted((name for name in own if name not in objects), key=distance)
        in_program = ("fungi.dir", "fungi-cli.dir" if program == "fungi" else f"{program}.dir")
        new = [str(path) for name, path in zip(objects, made) if name.split("/")[1] in in_program]
        first = words.index(own[0])
        words = [word for word in words if word not in own]
        words[first:first] = new + kept
        words[words.index("-o") + 1] = str(out)
        return subprocess.run(words, cwd=self.folder, capture_output=True).returncode == 0

    def restore_program(self) -> None:
        if self.whole.exists():
            self.whole.replace(self.folder / "fungi")

    def run(self, program: pathlib.Path, limit: float) -> tuple[bool, str]:
        """Whether all tests pass, and what says otherwise."""
        def confine() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()
        with open(self.folder / "mutate.out", "w+") as out:
            process = subprocess.Popen([program, "--gtest_fail_fast", "--gtest_brief=1"], cwd=ROOT, stdout=out,
                                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
                                       preexec_fn=confine, env=os.environ | {"TMPDIR": str(self.scratch)})
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                status = "no end"
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # whatever it started
            process.wait()
            out.seek(0)
            failed = re.findall(r"\[  FAILED  \] ([^\s,]+)", out.read(1 << 20))
        shutil.rmtree(self.scratch, ignore_errors=True)
        return status == 0, failed[0] if failed else f"status {status}"


class Results:
    def __init__(self, file: pathlib.Path):
        self.file, self.entries = file, {}
        for line in file.read_text().splitlines() if file.exists() else []:
            entry = json.loads(line)
            self.entries[self.key(Change(*entry["change"]))] = entry

    @staticmethod
    def key(change: Change) -> tuple:
        return change.file, change.column, change.before, change.after

    def add(self, room: str, change: Change, verdict: str, by: str) -> None:
        entry = {"room": room, "change": change, "verdict": verdict, "by": by}
        self.entries[self.key(change)] = entry
        with open(self.file, "a") as file:
            file.write(json.dumps(entry) + "\n")

    def of(self, files: set[str], *verdicts: str) -> list[tuple[Change, dict]]:
        found = ((Change(*entry["change"]), entry) for entry in self.entries.values())
        return sorted((c, e) for c, e in found if c.file in files and e["verdict"] in verdicts)


class Trial:
    """Changes of one room against its tests."""

    def __init__(self, build: Build, results: Results, room: str, tests: list[str]):
        self.build, self.results, self.room = build, results, room
        self.programs = list(dict.fromkeys(f"test_{name}" for name in [room, *tests]))
        build.make(self.programs)
        self.limits = {}
        for program in self.programs:
            began = time.monotonic()
            passed, by = build.run(build.folder / program, 600)
            if not passed:
                sys.exit(f"{program} fails without any change: {by}")
            self.limits[program] = 4 * (time.monotonic() - began) + 10

    def judge(self, change: Change) -> tuple[str, str]:
        text = applied(change)
        if text is None:
            return "gone", ""
        for program in self.programs:
            objects = self.build.objects_of(change.file, program)
            if not 0 < len(objects) <= MOST_OBJECTS:
                return "too many objects", ""
            made = self.build.compile(change.file, text, objects)
            if not made:
                return "does not compile", ""
            if self.build.is_unchanged(change.file, objects, made):
                return "same object", ""
            changed = self.build.mutant / program
            if not self.build.link(program, change.file, objects, made, changed):
                return "does not link", ""
            if program in RUN_PROGRAM:
                (self.build.folder / "fungi").replace(self.build.whole)
                self.build.link("fungi", change.file, objects, made, self.build.folder / "fungi")
            passed, by = self.build.run(changed, self.limits[program])
            self.build.restore_program()
            if not passed:
                return "noticed", by
        return "unnoticed", ""

    def try_new(self, files: list[pathlib.Path], wanted: int, seed: int) -> None:
        chance = random.Random(f"{seed} {self.room}")
        kinds = collections.defaultdict(list)
        for file in files:
            for kind, changes in changes_of(file).items():
                kinds[kind] += changes
        for changes in kinds.values():
            chance.shuffle(changes)
        names = {str(file.relative_to(ROOT)) for file in files}
        while any(kinds.values()) and len(self.results.of(names, *COUNTED)) < wanted:
            change = kinds[chance.choice(sorted(kind for kind in kinds if kinds[kind]))].pop()
            if Results.key(change) not in self.results.entries:
                self.report(change, *self.judge(change))

    def try_again(self, files: set[str]) -> None:
        for change, _ in self.results.of(files, "unnoticed"):
            verdict, by = self.judge(change)
            self.report(change, "mended" if verdict == "noticed" else verdict, by)

    def report(self, change: Change, verdict: str, by: str) -> None:
        self.results.add(self.room, change, verdict, by)
        print(f"{change.file}:{change.line}: {verdict} {by}", file=sys.stderr, flush=True)


def table(results: Results, rooms: dict[str, list[pathlib.Path]]) -> str:
    lines, unnoticed = ["| room | changes | noticed | mended | unnoticed |", "|---|---|---|---|---|"], []
    for room, files in rooms.items():
        names = {str(file.relative_to(ROOT)) for file in files}
        counts = {verdict: len(results.of(names, verdict)) for verdict in COUNTED}
        lines.append(f"| {room} | {sum(counts.values())} | " + " | ".join(str(counts[v]) for v in COUNTED) + " |")
        unnoticed += [change for change, _ in results.of(names, "unnoticed")]
    cell = lambda text: "`" + text.strip().replace("|", "\\|") + "`"
    lines += ["", "| file | line | before | after |", "|---|---|---|---|"]
    lines += [f"| {c.file} | {c.line} | {cell(c.before)} | {cell(c.after)} |" for c in unnoticed]
    return "\n".join(lines)


def sources(name: str) -> list[pathlib.Path]:
    folder = ROOT / "fungi" / name
    if folder.is_dir():
        return sorted(file for file in folder.iterdir() if file.suffix in (".h", ".cpp"))
    return [pathlib.Path(name).resolve()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", help="rooms, or files of fungi/")
    parser.add_argument("--changes", type=int, default=40, help="per room that count (default: 40)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", nargs="*", default=[], metavar="ROOM", help="further rooms whose tests count")
    parser.add_argument("--again", action="store_true", help="only what was not noticed")
    parser.add_argument("--table", action="store_true", help="only show what is known")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-mutate")
    arguments = parser.parse_args()
    os.nice(19)
    rooms = collections.defaultdict(list)
    for name in arguments.what:
        for file in sources(name):
            rooms[file.parent.name].append(file)
    folder = arguments.build.resolve()
    build, results = None if arguments.table else Build(folder), Results(folder / "mutate.jsonl")
    for room, files in rooms.items() if build else ():
        trial = Trial(build, results, room, arguments.tests)
        if arguments.again:
            trial.try_again({str(file.relative_to(ROOT)) for file in files})
        else:
            trial.try_new(files, arguments.changes, arguments.seed)
    print(table(results, rooms))


if __name__ == "__main__":
    main()
