# Python loads this file first, by its name. It records the calls that tests make of the
# product's functions with plain values, and what they come to.
import atexit
import json
import opcode
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE) + os.sep
MOST, LONG = 2000, 2000
calls, seen, open_calls = [], set(), {}
PLAIN = (int, float, str, bool, bytes, complex, type(None))


def is_test(path):
    base = os.path.basename(path)
    parts = path.split(os.sep)
    return base.startswith("test") or base.endswith("_test.py") or base == "conftest.py" or "tests" in parts[:-1] or "test" in parts[:-1]


def plain(v, depth=0):
    t = type(v)
    if t in PLAIN:
        return True
    if depth > 5:
        return False
    if t in (list, tuple, set, frozenset):
        return len(v) <= 200 and all(plain(x, depth + 1) for x in v)
    if t is dict:
        return len(v) <= 200 and all(plain(k, depth + 1) and plain(x, depth + 1) for k, x in v.items())
    return False


def written(v):
    text = repr(v)
    return text if len(text) <= LONG else None


def whole(cls):
    # Whether an object of the class is what its __dict__ says, and no more.
    return cls.__dictoffset__ != 0 and all(c is object or c.__flags__ & 0x200 and not vars(c).get("__slots__") for c in cls.__mro__)


def called(frame, code):
    # The name of what is called, and the object's state if it is a method; no name: it cannot be called again.
    own = frame.f_globals.get(code.co_name)
    if getattr(own, "__code__", None) is code:
        return code.co_name, None
    if not code.co_argcount:
        return None, None
    self = frame.f_locals.get(code.co_varnames[0])
    by_class = issubclass(type(self), type)
    cls = self if by_class else type(self)
    if frame.f_globals.get(cls.__name__) is not cls:
        return None, None
    name = cls.__name__ + "." + code.co_name
    is_code = lambda f: getattr(f, "__code__", None) is code
    for own in (vars(c)[code.co_name] for c in cls.__mro__ if code.co_name in vars(c)):
        if by_class:
            return (name, None) if isinstance(own, classmethod) and is_code(own.__func__) else (None, None)
        if (is_code(own) or isinstance(own, property) and is_code(own.fget)) and whole(cls) and plain(vars(self)):
            state = written(vars(self))
            return (name, state) if state is not None else (None, None)
        break
    return None, None


RETURNS = {opcode.opmap[n] for n in ("RETURN_VALUE", "RETURN_CONST") if n in opcode.opmap}
begun_in = threading.main_thread()


def raises(frame):
    # A call that is left by an exception is told to return None, too.
    code, at = frame.f_code.co_code, frame.f_lasti
    return not (0 <= at < len(code) and code[at] in RETURNS)


def profile(frame, event, arg):
    if event == "call":
        code = frame.f_code
        name = code.co_filename
        if len(calls) >= MOST or not name.startswith(ROOT) or name.startswith(HERE) or "site-packages" in name or code.co_flags & 0x2A0:
            return
        back = frame.f_back
        if is_test(name[len(ROOT):]) or back is None or not back.f_code.co_filename.startswith(ROOT) or not is_test(back.f_code.co_filename[len(ROOT):]):
            return
        if code.co_flags & 0x0C:
            return
        own, state = called(frame, code)
        if own is None:
            return
        n = code.co_argcount
        given = [frame.f_locals[v] for v in code.co_varnames["." in own:n]]
        named = {v: frame.f_locals[v] for v in code.co_varnames[n:n + code.co_kwonlyargcount]}
        if not plain(given) or not plain(named):
            return
        args, kw = written(tuple(given)), written(named)
        key = (frame.f_globals.get("__name__"), own, args, kw, state)
        if args is None or kw is None or key in seen or not key[0] or key[0] == "__main__":
            return
        seen.add(key)
        made = {"lang": "py", "module": key[0], "name": key[1], "args": args, "named": kw, "state": state,
                "result": None, "raises": False, "thread": threading.current_thread() is not begun_in, "file": name[len(ROOT):], "line": code.co_firstlineno}
        calls.append(made)
        open_calls[frame] = made
    elif event == "return" and open_calls:
        made = open_calls.pop(frame, None)  # None is what a call comes to that raises, too
        if made is not None:
            made["raises"] = arg is None and raises(frame)
        if made is not None and made["name"].endswith(".__init__"):
            arg = getattr(frame.f_locals.get(frame.f_code.co_varnames[0]), "__dict__", frame)  # which is not plain
        if made is not None and plain(arg):
            made["result"] = written(arg)


def leave():
    sys.setprofile(None)
    if calls:
        path = [os.path.relpath(p or ".", ROOT) for p in sys.path if os.path.abspath(p or ".").startswith(ROOT.rstrip(os.sep))]
        path = [p for p in path if not p.startswith("..") and os.path.basename(HERE) not in p]
        with open(os.path.join(HERE, "calls-%d.json" % os.getpid()), "w") as f:
            json.dump({"path": path, "calls": calls}, f)


atexit.register(leave)
threading.setprofile(profile)
sys.setprofile(profile)
