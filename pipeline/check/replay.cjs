'use strict';
// Makes the recorded calls again, in their order, in a program of its own. With "again" from the
// last to the first, each of them twice: what then comes to something else turns on what was before.
const fs = require('node:fs');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { inspect } = require('node:util');

const root = path.dirname(__dirname);
const record = JSON.parse(fs.readFileSync(path.join(__dirname, 'calls.json')));
for (const name of fs.readdirSync(__dirname)) fs.unlinkSync(path.join(__dirname, name));
const results = [], calls = record.again ? record.calls.reverse() : record.calls;
const load = async (file) => {
  try {
    return require(file);
  } catch (e) {
    if (!/^ERR_REQUIRE_(?:ESM|ASYNC_MODULE)$/.test(e?.code)) throw e;
    return import(pathToFileURL(file));
  }
};
const make = (f, c) => {
  try {
    return inspect(f(...JSON.parse(c.args)), { depth: 8, breakLength: Infinity, compact: true, maxArrayLength: 200, maxStringLength: 2000 });
  } catch {
    return 'throws';
  }
};
const next = async () => { // each from a stack of its own
  const c = calls[results.length];
  if (c) {
    let f;
    try {
      f = await load(path.join(root, c.module));
      if (c.name) f = f[c.name];
    } catch {
      f = null;
    }
    const got = typeof f === 'function' ? make(f, c) : null;
    results.push(got !== null && record.again && make(f, c) !== got ? null : got);
    setImmediate(next);
    return;
  }
  if (record.again) results.reverse();
  fs.writeFileSync(path.join(__dirname, 'results.json'), JSON.stringify(results));
  process.exit(0);
};
next();
