'use strict';
/**
 * Carries the start of a request from the edge to every service on its way, in the W3C `baggage` header.
 *
 *     TAILWRIGHT_HOSTS='store,*.svc.cluster.local' node --require ./tailwright-gat.js service.js
 *
 * does it for servers and clients of node:http, node:https and fetch without a change of code: requests that come in have a
 * current tag, calls to those hosts carry it, replies and calls to other hosts carry none. The entry point adds
 * TAILWRIGHT_ROLE=edge. `require('./tailwright-gat.js').current()` is the tag of the request that the code works for: what
 * a queue inside the service orders by. Values of headers are text whose characters stand for bytes (Latin-1), as in Node.
 */
const http = require('node:http');
const { AsyncLocalStorage } = require('node:async_hooks');
const { isIPv6 } = require('node:net');

const START_KEY = 'tailwright-start';
const DEADLINE_KEY = 'tailwright-deadline';
const BYTES_MAX = 8192;
const MEMBERS_MAX = 180;
const NS_MAX = 2n ** 64n - 1n;

/** A tag is `{startNs, deadlineNs}`: bigints of nanoseconds since 1970; deadlineNs may be null. */
const storage = new AsyncLocalStorage();

/** The tag of the request that the code works for; undefined outside of requests. */
const current = () => storage.getStore();

/** Something with our name is no tag. */
class MalformedTagError extends Error {}

const trim = (text) => text.replace(/^[ \t]+|[ \t]+$/g, '');

/** The members of header values in order, without the white space around them; empty ones are left out. */
const members = (values) => values.flatMap((value) => value.split(',')).map(trim).filter((member) => member !== '');

/** The tag in the values of all `baggage` headers of a request; null without one. Throws MalformedTagError. */
function read(values) {
  const found = { [START_KEY]: null, [DEADLINE_KEY]: null };
  for (const member of members(values)) {
    const equals = member.indexOf('=');
    const key = trim(member.slice(0, Math.max(equals, 0)));
    if (equals < 0 || !Object.hasOwn(found, key)) continue;
    const value = number(trim(member.slice(equals + 1).split(';', 1)[0]), key === START_KEY ? 0n : 1n);
    if (found[key] !== null && found[key] !== value) throw new MalformedTagError('two members of one name differ');
    found[key] = value;
  }
  const [startNs, deadlineNs] = [found[START_KEY], found[DEADLINE_KEY]];
  if (startNs === null && deadlineNs !== null) throw new MalformedTagError('a deadline without a start');
  return startNs === null ? null : { startNs, deadlineNs };
}

/** The one value that takes the place of all: this tag, then all that is not ours, within 8192 bytes and 180 members. */
function write(values, tag) {
  const kept = [`${START_KEY}=${tag.startNs}`];
  if (tag.deadlineNs !== null) kept.push(`${DEADLINE_KEY}=${tag.deadlineNs}`);
  let length = kept.join(',').length;
  for (const member of others(values)) {
    if (kept.length === MEMBERS_MAX || length + 1 + member.length > BYTES_MAX) break;
    length += 1 + member.length;
    kept.push(member);
  }
  return kept.join(',');
}

/** The values without anything of ours, and without what some library might take for it. */
function strip(values) {
  const rest = others(values);
  if (rest.length === members(values).length) return values;
  return rest.length === 0 ? [] : [rest.join(',')];
}

const others = (values) => members(values).filter((member) => !isOurs(member));

const isOurs = (member) => [START_KEY, DEADLINE_KEY].includes(folded(trim(member.split(/[=;]/, 1)[0])));

/** Lower case; percent-encoding is undone, in as many layers as there are, and what libraries trim is left out. */
function folded(key) {
  if (/^[A-Za-z0-9._-]*$/.test(key)) return key.toLowerCase();
  let decoded = key;
  do {
    key = decoded;
    decoded = key.replace(/%([0-9A-Fa-f]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  } while (decoded !== key);
  return key.replace(/[^!-~]|\+/g, '').toLowerCase();
}

function number(digits, least) {
  const value = /^[0-9]{1,20}$/.test(digits) ? BigInt(digits) : -1n;
  if (value < least || value > NS_MAX) throw new MalformedTagError(`'${digits}' is no number of nanoseconds`);
  return value;
}

const realClockNs = () => BigInt(Date.now()) * 1_000_000n;

/** Stamps requests from outside, and believes nothing that they claim. Starts increase strictly. */
class Edge {
  #sloNs;
  #clockNs;
  #lastNs = 0n;

  constructor({ sloNs = null, clockNs = realClockNs } = {}) {
    this.#sloNs = sloNs;
    this.#clockNs = clockNs;
  }

  /** The tag of a request that enters now. */
  receive() {
    const now = this.#clockNs();
    this.#lastNs = now > this.#lastNs ? now : this.#lastNs + 1n;
    return { startNs: this.#lastNs, deadlineNs: this.#sloNs === null ? null : this.#lastNs + BigInt(this.#sloNs) };
  }
}

/** Believes tags as far as clocks may err, and counts the cases. Without a tag a request starts at its arrival. */
class InnerTier {
  #aheadNsMax;
  #ageNsMax;
  #clockNs;
  /** How often each case occurred. */
  counts = { accepted: 0, untagged: 0, malformed: 0, future: 0, tooOld: 0, deadlineBeforeStart: 0 };

  constructor({ aheadNsMax = 10n ** 9n, ageNsMax = 3600n * 10n ** 9n, clockNs = realClockNs } = {}) {
    this.#aheadNsMax = aheadNsMax;
    this.#ageNsMax = ageNsMax;
    this.#clockNs = clockNs;
  }

  /** The tag by which a request is served here, and which its calls to other services carry. */
  receive(values) {
    const [tag, situation] = this.#judge(values, this.#clockNs());
    this.counts[situation] += 1;
    return tag;
  }

  #judge(values, nowNs) {
    const arrived = { startNs: nowNs, deadlineNs: null };
    let tag;
    try {
      tag = read(values);
    } catch (error) {
      if (error instanceof MalformedTagError) return [arrived, 'malformed'];
      throw error;
    }
    if (tag === null) return [arrived, 'untagged'];
    if (tag.startNs > nowNs + this.#aheadNsMax) return [arrived, 'future'];
    const oldestNs = nowNs > this.#ageNsMax ? nowNs - this.#ageNsMax : 0n;
    const { startNs, deadlineNs } = tag;
    if (startNs < oldestNs) {
      return [{ startNs: oldestNs, deadlineNs: deadlineNs !== null && deadlineNs >= oldestNs ? deadlineNs : null }, 'tooOld'];
    }
    if (deadlineNs !== null && deadlineNs < startNs) return [{ startNs, deadlineNs: null }, 'deadlineBeforeStart'];
    return [tag, 'accepted'];
  }
}

/** Whether a host, without a port, may see tags, by names, addresses and *.SUFFIX, separated by commas. */
function domain(patterns) {
  const parsed = patterns.split(',').map((text) => text.trim()).filter((text) => text !== '').map(pattern);
  return (host) => {
    const name = canonical(host);
    const matches = (one) => one === '*' || one === name || (one.startsWith('.') && name.endsWith(one) && name !== one);
    return name !== '' && parsed.some(matches);
  };
}

function pattern(text) {
  if (text === '*') return text;
  const name = canonical(text.startsWith('*.') ? text.slice(2) : text);
  if (!/^[a-z0-9._:-]+$/.test(name) || (name.includes(':') && !isIPv6(name))) {
    throw new RangeError(`'${text}' names no host: expected a name, an address, or *.SUFFIX, without scheme, port or path`);
  }
  return text.startsWith('*.') ? `.${name}` : name;
}

const canonical = (host) => host.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '').toLowerCase();

/** The `baggage` values of a call to a host of the domain, or not, whose own ones are `values`. */
function outgoing(values, isInside) {
  const tag = current();
  if (!isInside) return strip(values);
  return tag === undefined ? values : [write(values, tag)];
}

/** Exchanges the `baggage` of headers in any form that node:http takes: pairs, a flat list, a table of pairs, an object. */
function exchanged(headers, change) {
  const pairs = toPairs(headers);
  const isBaggage = ([name]) => String(name).toLowerCase() === 'baggage';
  const before = pairs.filter(isBaggage).flatMap(([, value]) => value).map(String);
  const after = change(before);
  if (before.length === 0 && after.length === 0) return headers;
  return [...pairs.filter((pair) => !isBaggage(pair)), ...after.map((value) => ['baggage', value])];
}

function toPairs(headers) {
  if (!headers) return [];
  if (!Array.isArray(headers)) {
    // The table inside node:http has the name as it was written beside each value.
    const isTable = Object.getPrototypeOf(headers) === null;
    return Object.entries(headers).map(([name, value]) => (isTable && Array.isArray(value) ? value : [name, value]));
  }
  if (headers.every(Array.isArray)) return headers;
  return headers.flatMap((_, at) => (at % 2 === 0 ? [[headers[at], headers[at + 1]]] : []));
}

/** Switches the hooks on: `hosts` as for domain(), `role` an Edge or an InnerTier. Once per process. */
function install({ hosts = '', role = new InnerTier() } = {}) {
  const isInside = domain(hosts);
  const { _storeHeader: storeHeader } = http.OutgoingMessage.prototype;
  http.OutgoingMessage.prototype._storeHeader = function (firstLine, headers) {
    const isCall = this instanceof http.ClientRequest;
    const change = isCall ? (values) => outgoing(values, isInside(this.host ?? '')) : strip;
    return storeHeader.call(this, firstLine, exchanged(headers, change));
  };
  const { emit } = http.Server.prototype;
  const wrapped = function (event, request, ...rest) {
    if (event !== 'request' && event !== 'upgrade') return emit.call(this, event, request, ...rest);
    const tag = role.receive(request.headersDistinct.baggage ?? []);
    request.headers.baggage = write(request.headersDistinct.baggage ?? [], tag);
    return storage.run(tag, () => emit.call(this, event, request, ...rest));
  };
  http.Server.prototype.emit = wrapped;
  require('node:https').Server.prototype.emit = wrapped;
  const { fetch } = globalThis;
  globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const before = request.headers.get('baggage');
    const after = outgoing(before === null ? [] : [before], isInside(new URL(request.url).hostname));
    request.headers.delete('baggage');
    after.forEach((value) => request.headers.append('baggage', value));
    return fetch(request);
  };
}

module.exports = { Edge, InnerTier, MalformedTagError, current, domain, install, read, strip, write };

if (module.parent === null || module.parent?.id === 'internal/preload') {
  const roles = { edge: () => new Edge(), inner: () => new InnerTier() };
  const name = process.env.TAILWRIGHT_ROLE ?? 'inner';
  if (!Object.hasOwn(roles, name)) throw new RangeError(`TAILWRIGHT_ROLE is '${name}': expected edge or inner`);
  install({ hosts: process.env.TAILWRIGHT_HOSTS ?? '', role: roles[name]() });
}
