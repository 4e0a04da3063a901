"""Prints what pip is to install for a Python project and its tests, one argument a line.

Without an argument: the project itself, editable, with what its files ask for. With
"names": names of packages alone, so that nothing of the project is run. With "project":
the project alone. With "locked": nothing; what a lock file says comes in, and is written
as files for pip: held.txt and held/ have what checksums hold, free/ what has none.
"""
import configparser, glob, os, re, sys

try:
    import tomllib
except ImportError:  # before Python 3.11
    from pip._vendor import tomli as tomllib

NAMES = sys.argv[1:] == ["names"]
PROJECT = sys.argv[1:] == ["project"]
TEST = re.compile(r"(unit-?)?tests?|testing|dev(el|elop|elopment)?|ci|all-?tests?|tests?-.*", re.I)
FILES = re.compile(r"(requirements([-_.](base|common|tests?|testing|dev(el|elopment)?|ci))?|(tests?|testing|dev(el|elopment)?|ci)[-_]requirements)\.(txt|in)")
PLAIN = re.compile(r"[A-Za-z0-9][\w.-]*\s*(\[[\w.,\s-]*\])?\s*([<>=!~][^;@/]*)?(;.*)?")


def write(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


if sys.argv[1:] == ["locked"]:
    lines = [line.strip() for line in sys.stdin.read().replace("\\\n", " ").splitlines()]
    lines = [line for line in lines if line and not line.startswith(("#", "--", "-i "))]
    held = [line for line in lines if "--hash=" in line]
    write("held.txt", "\n".join(held))
    for kind, some in ("held", held), ("free", [line for line in lines if line not in held]):
        for n, line in enumerate(some):
            write(f"{kind}/{n}.txt", line)
    sys.exit()


def read(path):
    try:
        with open(path, "rb") as f:
            return tomllib.load(f)
    except FileNotFoundError:
        return {}


toml = read("pyproject.toml")
project, tool = toml.get("project", {}), toml.get("tool", {})
poetry, hatch = tool.get("poetry", {}), tool.get("hatch", {}).get("envs", {})
setup = configparser.ConfigParser(interpolation=None, strict=False)
setup.read(["setup.cfg"])
out, extras = [], []


def say(line):
    line = line.split(" #")[0].strip()
    if line and not (NAMES and not PLAIN.fullmatch(line)) and line not in out:
        out.append(line)


def group(name, seen=()):
    for item in toml.get("dependency-groups", {}).get(name, []):
        if isinstance(item, str):
            say(item)
        elif item.get("include-group") not in seen:
            group(item.get("include-group"), (*seen, name))


def caret(version):  # ^1.2 and ~1.2 of Poetry, as pip writes them
    kind, numbers = version[:1], re.findall(r"\d+", version)[:3]
    if kind not in "^~" or version.startswith("~=") or not numbers:
        return version if version[:1] in "<>=!~" else "==" + version
    at = min(1, len(numbers) - 1) if kind == "~" else next((i for i, n in enumerate(numbers) if n != "0"), len(numbers) - 1)
    return f">={version[1:].strip()},<{'.'.join([*numbers[:at], str(int(numbers[at]) + 1)])}"


def poetry_table(table):
    for name, spec in table.items():
        for one in spec if isinstance(spec, list) else [spec]:
            one = {"version": one} if isinstance(one, str) else one
            if name == "python" or one.get("optional") or "path" in one:
                continue
            if "git" in one or "url" in one:
                say(f"{name} @ {'git+' + one['git'] if 'git' in one else one['url']}")
                continue
            version = one.get("version", "*")
            bounds = "" if version == "*" else ",".join(caret(v.strip()) for v in version.split(","))
            say(f"{name}{'[' + ','.join(one['extras']) + ']' if one.get('extras') else ''}{bounds}")


def requirements(path, seen):
    if path in seen or not os.path.isfile(path):
        return
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            other = re.match(r"\s*(?:-r|--requirement)[\s=]+(\S+)", line)
            if other:
                requirements(os.path.join(os.path.dirname(path), other[1]), seen | {path})
            else:
                say(line)


optional = project.get("optional-dependencies", {})
in_setup = dict(setup["options.extras_require"]) if setup.has_section("options.extras_require") else {}
extras = [name for name in [*optional, *in_setup, *poetry.get("extras", {})] if TEST.fullmatch(name)]
if os.path.isfile("setup.py"):
    with open("setup.py", encoding="utf-8", errors="replace") as f:
        text = f.read()
    if "extras_require" in text:
        extras += [name for name in ("test", "tests", "testing", "dev") if re.search(rf"""["']{name}["']\s*:""", text)]

packaged = project or "build-system" in toml or os.path.isfile("setup.py") or setup.has_section("metadata")
if poetry.get("package-mode") is False or tool.get("pdm", {}).get("distribution") is False or tool.get("uv", {}).get("package") is False:
    packaged = False
if "build-system" not in toml and os.path.isfile("uv.lock"):  # as uv sees it
    packaged = False
if PROJECT:
    print("\n".join(["--no-deps", "-e", "."] if packaged else []))
    sys.exit()
if not NAMES and packaged:
    out += ["-e", ".[" + ",".join(dict.fromkeys(extras)) + "]" if extras else "."]
else:
    for line in project.get("dependencies", []) + [line for name in extras for line in optional.get(name, [])]:
        say(line)
    for line in "\n".join([setup.get("options", "install_requires", fallback="")] + [in_setup.get(n, "") for n in extras]).splitlines():
        say(line)
    poetry_table(poetry.get("dependencies", {}))

for name in toml.get("dependency-groups", {}):
    if TEST.fullmatch(name):
        group(name)
for name, table in poetry.get("group", {}).items():
    if TEST.fullmatch(name):
        poetry_table(table.get("dependencies", {}))
poetry_table(poetry.get("dev-dependencies", {}))
for name, lines in tool.get("pdm", {}).get("dev-dependencies", {}).items():
    if TEST.fullmatch(name):
        for line in lines:
            say(line)
for name in hatch:
    if name == "default" or TEST.fullmatch(name) or name == "hatch-test":
        for line in hatch[name].get("dependencies", []) + hatch[name].get("extra-dependencies", []):
            say(line)

for part in ("packages", "dev-packages"):
    poetry_table(read("Pipfile").get(part, {}))

listed = [p for p in sorted(glob.glob("*")) if FILES.fullmatch(p)]
listed += [p for p in sorted(glob.glob("requirements/*")) if FILES.fullmatch("requirements-" + os.path.basename(p)) or os.path.basename(p) in ("main.txt",)]
listed += [p for p in sorted(glob.glob("tests/requirements*.txt"))]
for path in listed:
    if path.endswith(".in") and path[:-3] + ".txt" in listed:
        continue
    if NAMES:
        requirements(path, set())
    else:
        out += ["-r", path]

if not listed and not extras and not any(TEST.fullmatch(n) for n in [*toml.get("dependency-groups", {}), *poetry.get("group", {})]):
    tox = configparser.ConfigParser(interpolation=None, strict=False)
    tox.read(["tox.ini"])
    for line in tox.get("testenv", "deps", fallback="").splitlines():
        line = re.sub(r"^[\w.,{}!-]+:\s+", "", line.strip())
        if "{" not in line and not line.startswith("-"):
            say(line)

print("\n".join(out))
