'use strict';
// Host lists that every language has to read alike, and the decoding of keys: against a loop over layers, and by its cost.
const assert = require('node:assert');
const gat = require('./tailwright-gat.js');

for (const { patterns, host, contains, error } of require('../hosts.json')) {
  if (error) assert.throws(() => gat.domain(patterns), RangeError, patterns);
  else assert.strictEqual(gat.domain(patterns)(host), contains, `${patterns} and ${host}`);
}

/** One pass for each layer. */
function decodedSlowly(text) {
  for (let before = null; before !== text; ) {
    before = text;
    text = before.replace(/%([0-9A-Fa-f]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  }
  return text;
}

let seed = 1;
const random = (below) => {
  seed = (seed * 48271) % 2147483647;
  return seed % below;
};
const PIECES = ['%', '%', '25', '%25', '%2', '5', '3', '7', 'f', 'A', 'x', '%74', '%3', '%zz', '\xe9'];
for (let round = 0; round < 20_000; round += 1) {
  const text = Array.from({ length: random(20) }, () => PIECES[random(PIECES.length)]).join('');
  assert.strictEqual(gat.decoded(text), decodedSlowly(text), JSON.stringify(text));
}

/**
 * How many times as long ten times the length takes: 10 for linear work, 100 for quadratic. Both take less time than the
 * machine lets a program run before it lets another one.
 */
function growth(make) {
  const fastest = (value) => {
    let least = Infinity;
    for (let round = 0; round < 10; round += 1) {
      const before = process.hrtime.bigint();
      gat.strip([value]);
      least = Math.min(least, Number(process.hrtime.bigint() - before));
    }
    return least;
  };
  const [short, long] = [make(2_000), make(20_000)];
  fastest(long);
  return fastest(long) / fastest(short);
}
const hostile = {
  layers: (length) => `%${'25'.repeat(length / 2)}74ailwright-start=1`,
  blanks: (length) => `a${' '.repeat(length)}b=1`,
  members: (length) => 'a%41=1,'.repeat(length / 7),
};
assert.deepStrictEqual(gat.strip([hostile.layers(1000)]), []);
for (const [name, make] of Object.entries(hostile)) assert(growth(make) < 40, `${name} cost more than linear work`);
