// Hooks of node for what a test imports of the product: it is given a module that imports the
// real one, and shows its functions as record.cjs records them.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const mark = '?forge-calls';
let root, tests;

export const initialize = (data) => ({ root, tests } = data);

const isTest = (file) => tests.some((t) => t.test(path.sep + file.slice(root.length)));
const ours = (url) => {
  if (!url?.startsWith('file:') || url.includes('?')) return null;
  const file = fileURLToPath(url);
  return file.startsWith(root) && !file.startsWith(root + '.forge-calls') && !file.includes(path.sep + 'node_modules' + path.sep) ? file : null;
};

export async function resolve(name, context, next) {
  const found = await next(name, context);
  const from = ours(context.parentURL), file = ours(found.url);
  return from && file && isTest(from) && !isTest(file) && /\.[cm]?js$/.test(file) ? { ...found, url: found.url + mark } : found;
}

// The names by which functions may be exported. One that is bound again later is left alone:
// it would not be seen to change.
const named = (text) => {
  const out = new Set();
  for (const m of text.matchAll(/\bexport\s+(?:async\s+)?(?:function|const)\s+([\w$]+)|\bexports\.([\w$]+)\s*=/g)) out.add(m[1] ?? m[2]);
  for (const m of text.matchAll(/\bexport\s*\{([^}]*)\}|\bmodule\.exports\s*=\s*\{([^}]*)\}/g)) {
    for (const part of (m[1] ?? m[2]).split(',')) out.add(part.split(/\sas\s|:/).at(m[1] === undefined ? 0 : -1).trim());
  }
  const bound = (n) => new RegExp(`\\b(?:let|var|class)\\s+${n.replaceAll('$', '\\$')}\\b`).test(text);
  return [...out].filter((n) => /^[A-Za-z_$][\w$]*$/.test(n) && n !== 'default' && n !== 'then' && !bound(n));
};

export async function load(url, context, next) {
  if (!url.endsWith(mark)) return next(url, context);
  const real = url.slice(0, -mark.length), file = fileURLToPath(real), text = await readFile(file, 'utf8');
  const about = JSON.stringify(file), show = `globalThis[Symbol.for('forge-calls')]`;
  const lines = named(text).map((n, i) => `const f${i} = ${show}(m.${n}, ${about}, '${n}');\nexport { f${i} as ${n} };`);
  const whole = /\bexport\s+default\b|\bas\s+default\b/.test(text) ? `${show}(m.default, ${about}, 'default')` : `${show}(m.default, ${about})`;
  lines.unshift(`import * as m from ${JSON.stringify(real)};`, `export * from ${JSON.stringify(real)};`);
  if (/\bdefault\b|\bexports\b/.test(text)) lines.push(`export default ${whole};`);
  return { format: 'module', shortCircuit: true, source: lines.join('\n') };
}
