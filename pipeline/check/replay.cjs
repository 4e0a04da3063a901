'use strict';
// Makes the recorded calls again, in their order, in a program of its own.
const fs = require('node:fs');
const path = require('node:path');
const { inspect } = require('node:util');

const root = path.dirname(__dirname);
const record = JSON.parse(fs.readFileSync(path.join(__dirname, 'calls.json')));
for (const name of fs.readdirSync(__dirname)) fs.unlinkSync(path.join(__dirname, name));
const results = [];
const make = (c) => {
  let f;
  try {
    f = require(path.join(root, c.module));
    if (c.name) f = f[c.name];
    if (typeof f !== 'function') return null;
  } catch {
    return null;
  }
  try {
    return inspect(f(...JSON.parse(c.args)), { depth: 8, breakLength: Infinity, compact: true, maxArrayLength: 200, maxStringLength: 2000 });
  } catch {
    return 'throws';
  }
};
const next = () => { // each from a stack of its own
  const c = record.calls[results.length];
  if (c) {
    results.push(make(c));
    setImmediate(next);
    return;
  }
  fs.writeFileSync(path.join(__dirname, 'results.json'), JSON.stringify(results));
  process.exit(0);
};
next();
