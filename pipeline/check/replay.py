# Makes the recorded calls again, in their order, in a program of its own. With "again" from the
# last to the first, each of them twice: what then comes to something else turns on what was before.
import ast
import importlib
import inspect
import json
import os
import sys


def target(c):
    f = importlib.import_module(c["module"])
    *owner, name = c["name"].split(".")
    for part in owner:
        f = getattr(f, part)
    if c.get("state") is None:
        return getattr(f, name)
    if name == "__init__":
        return lambda *args, **named: vars(f(*args, **named))
    own = f.__new__(f)
    vars(own).update(ast.literal_eval(c["state"]))
    if isinstance(inspect.getattr_static(f, name), property):
        return lambda: getattr(own, name)
    return getattr(own, name)


def made(c):
    try:
        f = target(c)
        args, named = ast.literal_eval(c["args"]), ast.literal_eval(c["named"])
    except BaseException:
        return None
    try:
        return repr(f(*args, **named))
    except BaseException as error:  # of a command line's main, too
        if c.get("thread") or isinstance(error, (StopIteration, StopAsyncIteration)):
            c["ends"] = type(error).__name__
        return None if c["name"].endswith(".__init__") else "None"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(here)
    with open(os.path.join(here, "calls.json")) as f:
        record = json.load(f)
    out = os.path.join(here, "results.json")
    sys.path[0] = root
    for entry in record["path"]:
        sys.path.append(os.path.join(root, entry))
    for name in os.listdir(here):
        os.remove(os.path.join(here, name))
    results = []
    for c in reversed(record["calls"]) if record["again"] else record["calls"]:
        got = made(c)
        results.append(got if not record["again"] or made(c) == got else None)
    if record["again"]:
        results.reverse()
    with open(out, "w") as f:
        json.dump(results, f)
    with open(os.path.join(here, "ends.json"), "w") as f:
        json.dump([c.get("ends", "") for c in record["calls"]], f)


main()
