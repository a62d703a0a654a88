'use strict';
// The cases that every language has to get right.
const assert = require('node:assert');
const gat = require('./tailwright-gat.js');
const cases = require('../cases.json');
const paths = require('../paths.json');
const received = require('../received.json');

function read(values) {
  try {
    const tag = gat.read(values);
    return tag && [String(tag.startNs), tag.deadlineNs === null ? null : String(tag.deadlineNs)];
  } catch (error) {
    if (error instanceof gat.MalformedTagError) return 'malformed';
    throw error;
  }
}

assert(cases.length > 30);
for (const { what, values, ...expected } of cases) {
  const stripped = gat.strip(values);
  const strip = stripped === values ? 'keep' : stripped[0] ?? 'remove';
  const written = gat.write(values, { startNs: 1_700_000_000_000_000_000n, deadlineNs: null });
  assert.deepStrictEqual({ read: read(values), strip, written }, expected, what);
}

assert(received.length > 10);
for (const { what, values, tag, case: situation } of received) {
  const tier = new gat.InnerTier({ clockNs: () => 1_700_000_000_000_000_000n });
  const { startNs, deadlineNs } = tier.receive(values);
  assert.deepStrictEqual([String(startNs), deadlineNs === null ? null : String(deadlineNs)], tag, what);
  assert.strictEqual(tier.counts[situation.replace(/_(.)/g, (_, letter) => letter.toUpperCase())], 1, what);
}

for (const sloNs of [0, -1, Number.NaN, 0.5, '1', true, 2 ** 60, 86400n * 10n ** 9n + 1n]) {
  assert.throws(() => new gat.Edge({ sloNs }), RangeError);
  assert.throws(() => new gat.Edge({ sloNsOf: () => sloNs }).receive([]), RangeError);
}

const slos = '/batch=5s,/api/*=1s,/*=50ms';
const ofSlos = (path) => {
  if (path === null || path === '/batch') return 5_000_000_000;
  return path.startsWith('/api/') ? 1_000_000_000 : 50_000_000;
};
const ofThese = paths.filter((one) => one.slos === slos);
assert(ofThese.length > 30);
for (const { path, slo_ns: sloNs } of ofThese) {
  const url = path.replace(/[^!-~]|[%?#]/g, encodeURIComponent);
  for (const query of ['', '?//;', '?x=%', '#/..']) {
    assert.strictEqual(ofSlos(gat.pathOf({ url: url + query })), Number(sloNs), path);
  }
}
const urls = { '/%73oon': '/soon', 'http://a:1/soon?x': '/soon', 'HTTP://a': null, 'http://a?/soon': null, '//a/soon': null };
for (const [url, path] of Object.entries({ ...urls, '/%ff': null, '/%': null, '/%2573oon': null, '/a%2f..%2fsoon': null, a: null })) {
  assert.strictEqual(gat.pathOf({ url }), path, url);
}
