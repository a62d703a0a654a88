'use strict';
// The SLO of a request by its path, nanoseconds: TAILWRIGHT_SLOS=./example-slos.js
const { pathOf } = require('./tailwright-gat.js');

const slosNs = new Map([['/soon', 50_000_000], ['/later', 5_000_000_000n]]);

module.exports = (request) => slosNs.get(pathOf(request)) ?? null;
