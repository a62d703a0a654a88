'use strict';
/**
 * Carries the start of a request from the edge to every service on its way, in the W3C `baggage` header.
 *
 *     TAILWRIGHT_HOSTS='store,*.svc.cluster.local' node --require ./tailwright-gat.js service.js
 *
 * (or `--import`) does it for servers and clients of node:http, node:https and fetch without a change of code: requests
 * that come in have a current tag, calls to those hosts carry it, replies and calls to other hosts carry none. The entry
 * point adds TAILWRIGHT_ROLE=edge, and TAILWRIGHT_SLOS=./slos.js for deadlines: a module whose export is `sloNsOf` of
 * Edge, for example
 *
 *     const { pathOf } = require('./tailwright-gat.js');
 *     module.exports = (request) => (pathOf(request) === '/search' ? 50_000_000 : null);
 *
 * `require('./tailwright-gat.js').current()` is the tag of the request that the code works for: what
 * a queue inside the service orders by. Values of headers are text whose characters stand for bytes (Latin-1), as in Node.
 */
const http = require('node:http');
const https = require('node:https');
const { AsyncLocalStorage } = require('node:async_hooks');
const { createRequire, syncBuiltinESMExports } = require('node:module');
const { isIPv6 } = require('node:net');
const { fileURLToPath } = require('node:url');

const START_KEY = 'tailwright-start';
const DEADLINE_KEY = 'tailwright-deadline';
/** A day: what is longer is a mistake of a unit. */
const SLO_NS_MAX = 86400n * 10n ** 9n;
const BYTES_MAX = 8192;
const MEMBERS_MAX = 180;
const NS_MAX = 2n ** 64n - 1n;

/** A tag is `{startNs, deadlineNs}`: bigints of nanoseconds since 1970; deadlineNs may be null. */
const storage = new AsyncLocalStorage();

/** The tag of the request that the code works for; undefined outside of requests. */
const current = () => storage.getStore();

/** Something with our name is no tag. */
class MalformedTagError extends Error {}

/** Without spaces and tabs at both ends. A regular expression would take quadratic time for long runs inside. */
function trim(text) {
  const isBlank = (at) => text[at] === ' ' || text[at] === '\t';
  let [from, to] = [0, text.length];
  while (from < to && isBlank(from)) from += 1;
  while (from < to && isBlank(to - 1)) to -= 1;
  return text.slice(from, to);
}

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
  return decoded(key).replace(/[^!-~]|\+/g, '').toLowerCase();
}

/**
 * The text after percent-decoding until nothing is left to decode, in one pass: what a decoded byte completes is decoded at
 * once. No two escapes can overlap, so that the order makes no difference.
 */
function decoded(text) {
  const stack = [];
  for (let at = 0; at < text.length; at += 1) {
    stack.push(text[at]);
    for (let byte = escaped(stack); byte !== null; byte = escaped(stack)) {
      stack.length -= 3;
      stack.push(byte);
    }
  }
  return stack.join('');
}

/** The byte that the last three characters stand for; null if they are no escape. */
function escaped(stack) {
  if (stack.at(-3) !== '%') return null;
  const digits = stack.at(-2) + stack.at(-1);
  return /^[0-9A-Fa-f]{2}$/.test(digits) ? String.fromCharCode(parseInt(digits, 16)) : null;
}

function number(digits, least) {
  const value = /^[0-9]{1,20}$/.test(digits) ? BigInt(digits) : -1n;
  if (value < least || value > NS_MAX) throw new MalformedTagError(`'${digits}' is no number of nanoseconds`);
  return value;
}

const realClockNs = () => BigInt(Date.now()) * 1_000_000n;

/**
 * Stamps requests from outside, whatever tags they carry. Starts of one Edge increase strictly.
 *
 * The SLO is one for all requests, `sloNs`, or that of the class of a request: `sloNsOf(request)` gives nanoseconds, or null
 * for a request without a deadline. An SLO is a whole number of nanoseconds, of any type, above zero and at most a day; any
 * other is a RangeError.
 */
class Edge {
  #sloNs;
  #sloNsOf;
  #clockNs;
  #lastNs = 0n;

  constructor({ sloNs = null, sloNsOf = null, clockNs = realClockNs } = {}) {
    if (sloNs !== null && sloNsOf !== null) throw new RangeError('sloNs and sloNsOf; expected one of them');
    this.#sloNs = checkedSlo(sloNs);
    this.#sloNsOf = sloNsOf;
    this.#clockNs = clockNs;
  }

  /** The tag of a request that enters now. */
  receive(_values, request) {
    const now = this.#clockNs();
    this.#lastNs = now > this.#lastNs ? now : this.#lastNs + 1n;
    const startNs = this.#lastNs;
    const sloNs = this.#sloNsOf === null ? this.#sloNs : checkedSlo(this.#sloNsOf(request) ?? null);
    return { startNs, deadlineNs: sloNs === null ? null : startNs + sloNs };
  }
}

/** What another part of a service may read as another path: empty segments, dots alone, what may be decoded or cut off once more. */
const AMBIGUOUS = /^(?!\/)|\/\/|\/\.\.?(?:\/|$)|[;%\\\x00-\x1f\x7f\ufffd]/;

/**
 * The decoded path of a request, without its query; null if it may be read in several ways. Such a request is to have the
 * longest SLO, so that no spelling buys a shorter one.
 */
function pathOf(request) {
  const [raw] = request.url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').split(/[?#]/, 1);
  try {
    const path = decodeURIComponent(raw);
    return AMBIGUOUS.test(path) ? null : path;
  } catch {
    return null;
  }
}

/** An SLO as a bigint of nanoseconds; null for none. */
function checkedSlo(sloNs) {
  if (sloNs === null) return null;
  const isWhole = typeof sloNs === 'bigint' || Number.isSafeInteger(sloNs);
  if (!isWhole || sloNs <= 0 || sloNs > SLO_NS_MAX) {
    throw new RangeError(`an SLO of ${sloNs} ns; expected a whole number, more than zero, and at most a day`);
  }
  return BigInt(sloNs);
}

/** Accepts tags as far as clocks may err, and counts the cases. Without a tag a request starts at its arrival. */
class InnerTier {
  #aheadNsMax;
  #ageNsMax;
  #sloNsMax;
  #clockNs;
  /** How often each case occurred. */
  counts = { accepted: 0, untagged: 0, malformed: 0, future: 0, tooOld: 0, deadlineBeforeStart: 0, deadlineTooFar: 0 };

  constructor({ aheadNsMax = 10n ** 9n, ageNsMax = 3600n * 10n ** 9n, sloNsMax = SLO_NS_MAX, clockNs = realClockNs } = {}) {
    this.#aheadNsMax = aheadNsMax;
    this.#ageNsMax = ageNsMax;
    this.#sloNsMax = sloNsMax;
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
      const possible = deadlineNs !== null && deadlineNs >= oldestNs && deadlineNs <= oldestNs + this.#sloNsMax;
      return [{ startNs: oldestNs, deadlineNs: possible ? deadlineNs : null }, 'tooOld'];
    }
    if (deadlineNs !== null && deadlineNs < startNs) return [{ startNs, deadlineNs: null }, 'deadlineBeforeStart'];
    if (deadlineNs !== null && deadlineNs > startNs + this.#sloNsMax) return [{ startNs, deadlineNs: null }, 'deadlineTooFar'];
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
  if (!/^[a-z0-9_:-][a-z0-9._:-]*$/.test(name) || (name.includes(':') && !isIPv6(name))) {
    throw new RangeError(`'${text}' names no host: expected a name, an address, or *.SUFFIX, without scheme, port or path`);
  }
  return text.startsWith('*.') ? `.${name}` : name;
}

/** Without brackets and the final dot, in lower case, and addresses of IPv6 in one spelling. */
function canonical(host) {
  const name = host.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '').toLowerCase();
  return isIPv6(name) && !name.includes('%') ? new URL(`http://[${name}]`).hostname.slice(1, -1) : name;
}

/** The `baggage` values of a call for a request with this tag to a host that is inside, or not; its own ones are `values`. */
function outgoing(values, tag, isInside) {
  if (!isInside) return strip(values);
  return tag === undefined ? values : [write(values, tag)];
}

const isBaggage = ([name]) => String(name).toLowerCase() === 'baggage';

/** Exchanges the `baggage` of headers in any form that node:http takes: pairs, a flat list, an object, the own table. */
function exchanged(headers, change, isTable = false) {
  const pairs = toPairs(headers, isTable);
  const before = pairs.filter(isBaggage).flatMap(([, value]) => value).map(String);
  const after = change(before);
  if (before.length === 0 && after.length === 0) return headers;
  return [...pairs.filter((pair) => !isBaggage(pair)), ...after.map((value) => ['baggage', value])];
}

/** The table inside of a message has pairs of the name as it was written and the value. */
function toPairs(headers, isTable) {
  if (!headers) return [];
  if (!Array.isArray(headers)) return isTable ? Object.values(headers) : Object.entries(headers);
  if (Array.isArray(headers[0])) return headers;
  return headers.flatMap((_, at) => (at % 2 === 0 ? [[headers[at], headers[at + 1]]] : []));
}

/** Where a message of node:http keeps the headers that were set one by one. */
const tableKey = Object.getOwnPropertySymbols(new http.OutgoingMessage()).find((key) => key.description === 'kOutHeaders');

/** The tags of requests that came in, and of calls, which may be written when the code works for another request. */
const tags = new WeakMap();

/** Switches the hooks on: `hosts` as for domain(), `role` an Edge or an InnerTier. Once per process. */
function install({ hosts = '', role = new InnerTier() } = {}) {
  const isInside = domain(hosts);
  hookServers(role);
  hookMessages(isInside);
  hookFetch(isInside);
  [http, https].forEach(hookRequest);
  syncBuiltinESMExports();
}

/** The events of a server that hand out a request, and with it a reply or a socket. */
const REQUEST_EVENTS = ['request', 'checkContinue', 'checkExpectation', 'upgrade', 'connect'];

function hookServers(role) {
  const { emit } = http.Server.prototype;
  const wrapped = function (event, request, ...rest) {
    if (!REQUEST_EVENTS.includes(event)) return emit.call(this, event, request, ...rest);
    try {
      // A listener of checkContinue hands the request on by another event.
      if (!tags.has(request)) admit(request, rest[0], role);
    } catch (error) {
      refuse(rest[0], error);
      return true;
    }
    return storage.run(tags.get(request), () => emit.call(this, event, request, ...rest));
  };
  http.Server.prototype.emit = wrapped;
  https.Server.prototype.emit = wrapped;
}

/** A function of SLOs that fails costs its request, not the service. */
function refuse(replyOrSocket, error) {
  process.emitWarning(error);
  if (replyOrSocket instanceof http.ServerResponse) replyOrSocket.writeHead(500).end();
  else replyOrSocket.destroy();
}

/** Gives a request its tag, in all forms of its headers, and to what listens to it and to its reply or socket. */
function admit(request, replyOrSocket, role) {
  const values = request.headersDistinct.baggage ?? [];
  const tag = role.receive(values, request);
  tags.set(request, tag);
  const value = write(values, tag);
  request.rawHeaders = exchanged(request.rawHeaders, () => [value]).flat();
  request.headers.baggage = value;
  request.headersDistinct.baggage = [value];
  for (const emitter of [request, replyOrSocket]) {
    const { emit } = emitter;
    emitter.emit = (...args) => storage.run(tag, () => emit.apply(emitter, args));
  }
}

function hookMessages(isInside) {
  const message = http.OutgoingMessage.prototype;
  const { _storeHeader: storeHeader, addTrailers } = message;
  message._storeHeader = function (firstLine, headers) {
    let change = strip;
    if (this instanceof http.ClientRequest) {
      const isForInside = isInside(proxyHost(this, firstLine) ?? '') && isInside(targetHost(firstLine) ?? this.host);
      const tag = tags.has(this) ? tags.get(this) : current();
      change = (values) => outgoing(values, tag, isForInside);
    }
    return storeHeader.call(this, firstLine, exchanged(headers, change, headers === this[tableKey]));
  };
  message.addTrailers = function (headers) {
    return addTrailers.call(this, exchanged(headers, strip));
  };
  const { writeEarlyHints } = http.ServerResponse.prototype;
  http.ServerResponse.prototype.writeEarlyHints = function (hints, ...rest) {
    const stripped = exchanged(hints, strip);
    return writeEarlyHints.call(this, stripped === hints ? hints : Object.fromEntries(stripped), ...rest);
  };
}

/** The host that a proxy is asked to call: that of a request line with a whole URL. Undefined for a path. */
function targetHost(firstLine) {
  const target = firstLine.split(' ', 2)[1];
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(target)) return undefined;
  return URL.canParse(target) ? new URL(target).hostname : '';
}

/** The host that is called, which may be a proxy; where an agent makes the call one of a proxy, that does not say which. */
function proxyHost(call, firstLine) {
  const target = targetHost(firstLine);
  return target !== undefined && canonical(target) === canonical(call.host ?? '') ? undefined : call.host;
}

/** A call belongs to the request for which it was made, also when its first byte is written later. */
function hookRequest(library) {
  const { request } = library;
  library.request = function (...args) {
    const call = request.apply(this, args);
    tags.set(call, current());
    return call;
  };
}

function hookFetch(isInside) {
  const { fetch } = globalThis;
  globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    const before = request.headers.get('baggage');
    const isForInside = isInside(new URL(request.url).hostname);
    const after = outgoing(before === null ? [] : [before], current(), isForInside);
    request.headers.delete('baggage');
    after.forEach((value) => request.headers.append('baggage', value));
    return fetch(request);
  };
}

/** Whether node was told to --import this file; then it has no parent, as if a module of the service imported it. */
function isImportedFirst() {
  const options = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ');
  const { resolve } = createRequire(`${process.cwd()}/`);
  return [...options.matchAll(/--import[= ]"?([^\s"]+)/g)].some(([, name]) => {
    try {
      return (name.startsWith('file:') ? fileURLToPath(name) : resolve(name)) === __filename;
    } catch {
      return false;
    }
  });
}

/** The function that a file exports; null without a file. */
function slosOf(file) {
  if (file === undefined) return null;
  const expected = `TAILWRIGHT_SLOS is '${file}': expected a file, such as ./slos.js, that exports a function of the request`;
  const { resolve: found } = createRequire(`${process.cwd()}/`);
  let path;
  try {
    path = found(file);
  } catch {
    throw new RangeError(expected);
  }
  const sloNsOf = require(path);
  if (typeof sloNsOf !== 'function') throw new RangeError(expected);
  return sloNsOf;
}

module.exports = { Edge, InnerTier, MalformedTagError, current, decoded, domain, install, pathOf, read, strip, write };

if (module.parent === null || module.parent?.id === 'internal/preload' || (!module.parent && isImportedFirst())) {
  const name = process.env.TAILWRIGHT_ROLE ?? 'inner';
  const slos = process.env.TAILWRIGHT_SLOS;
  if (slos !== undefined && name !== 'edge') throw new RangeError('TAILWRIGHT_SLOS needs TAILWRIGHT_ROLE=edge');
  const roles = { edge: () => new Edge({ sloNsOf: slosOf(slos) }), inner: () => new InnerTier() };
  if (!Object.hasOwn(roles, name)) throw new RangeError(`TAILWRIGHT_ROLE is '${name}': expected edge or inner`);
  install({ hosts: process.env.TAILWRIGHT_HOSTS ?? '', role: roles[name]() });
}
