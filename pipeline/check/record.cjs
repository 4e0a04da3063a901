'use strict';
// Loaded by node first. It records the calls that tests make of functions that the product's
// modules export, with plain values, and what they come to.
const Module = require('node:module');
const path = require('node:path');
const fs = require('node:fs');
const { pathToFileURL } = require('node:url');
const { inspect } = require('node:util');
const { isMainThread } = require('node:worker_threads');

const root = path.dirname(__dirname) + path.sep;
const MOST = 2000, LONG = 2000;
const calls = [], seen = new Set(), wrapped = new Map();

const tests = [/[\\/]test[^\\/]*$/, /[._-](?:test|spec)\.[cm]?[jt]sx?$/, /[\\/](?:tests?|specs?|__tests__)[\\/]/];
const isTest = (name) => tests.some((t) => t.test(path.sep + name));
const own = (name) => typeof name === 'string' && name.startsWith(root) && !name.startsWith(__dirname) && !name.includes(path.sep + 'node_modules' + path.sep);

const plain = (v, depth = 0) => {
  if (v === null || v === undefined) return true;
  if (['number', 'string', 'boolean', 'bigint'].includes(typeof v)) return true;
  if (typeof v !== 'object' || depth > 5) return false;
  const kind = Object.getPrototypeOf(v);
  if (Array.isArray(v)) return kind === Array.prototype && v.length <= 200 && v.every((x) => plain(x, depth + 1));
  return kind === Object.prototype && Object.getOwnPropertySymbols(v).length === 0 && Object.values(Object.getOwnPropertyDescriptors(v)).every((d) => 'value' in d && plain(d.value, depth + 1));
};
const written = (v) => {
  const text = inspect(v, { depth: 8, breakLength: Infinity, compact: true, maxArrayLength: 200, maxStringLength: LONG });
  return text.length <= LONG ? text : null;
};

const recording = (f, file, name) => new Proxy(f, {
  apply(target, self, args) {
    let made = null;
    if (calls.length < MOST && plain(args)) {
      const given = JSON.stringify(args), key = file + '\0' + name + '\0' + given;
      if (given.length <= LONG && written(JSON.parse(given)) === written(args) && !seen.has(key)) {
        seen.add(key);
        calls.push(made = { lang: 'js', module: file, name, args: given, named: '{}', result: null, file, line: 1 });
      }
    }
    try {
      const out = Reflect.apply(target, self, args);
      if (made && plain(out)) made.result = written(out);
      return out;
    } catch (e) {
      if (made) made.result = 'throws';
      throw e;
    }
  },
});

const load = Module._load;
Module._load = function (request, parent, ...rest) {
  const out = load.call(this, request, parent, ...rest);
  if (!parent || !own(parent.filename) || !isTest(parent.filename.slice(root.length))) return out;
  let file;
  try { file = Module._resolveFilename(request, parent); } catch { return out; }
  if (!own(file) || isTest(file.slice(root.length)) || !/\.[cm]?js$/.test(file)) return out;
  return shown(out, file);
};

const isFunction = (f) => typeof f === 'function' && !/^class\b/.test(Function.prototype.toString.call(f));

// shown is what tests see of a module: its functions, recorded.
const shown = (out, file) => {
  if (wrapped.has(file)) return wrapped.get(file);
  const from = file.slice(root.length);
  let view = out;
  if (isFunction(out)) view = recording(out, from, '');
  else if (out && Object.getPrototypeOf(out) === Object.prototype) {
    view = Object.create(out);
    for (const [name, d] of Object.entries(Object.getOwnPropertyDescriptors(out))) {
      Object.defineProperty(view, name, isFunction(d.value) ? { ...d, configurable: true, value: recording(d.value, from, name) } : { ...d, configurable: true });
    }
  }
  wrapped.set(file, view);
  return view;
};

// What a test imports comes by hooks of node, which have a thread of their own: record.mjs.
if (Module.register && isMainThread) {
  const show = (value, file, name) => (name === undefined ? shown(value, file) : isFunction(value) ? recording(value, file.slice(root.length), name) : value);
  Object.defineProperty(globalThis, Symbol.for('forge-calls'), { value: show });
  Module.register(pathToFileURL(path.join(__dirname, 'record.mjs')), { data: { root, tests } });
}

// Whose code ends a process of the tests as if all were well: the first of the stack that is no library's.
const exits = [];
const keep = () => {
  if (calls.length + exits.length) fs.writeFileSync(path.join(__dirname, `calls-${process.pid}.json`), JSON.stringify({ path: [], calls, exits }));
};
for (const what of ['exit', 'reallyExit']) {
  const end = process[what];
  process[what] = function (code) {
    if (isMainThread && !Number(code ?? process.exitCode) && exits.length === 0) {
      const frames = String(new Error().stack).split('\n').slice(1).map((l) => /\(?((?:file:\/\/)?\/.*):(\d+):\d+\)?$/.exec(l));
      const by = frames.map((m) => m && { file: m[1].replace(/^file:\/\//, ''), line: Number(m[2]) }).find((m) => m && own(m.file));
      if (by && own(process.argv[1])) exits.push({ file: by.file.slice(root.length), line: by.line, main: process.argv[1].slice(root.length) });
    }
    if (what === 'reallyExit') keep();
    return Reflect.apply(end, process, arguments);
  };
}
process.on('exit', keep);
