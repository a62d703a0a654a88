'use strict';
// The hooks in one process: what listeners see, and what passes over the wire.
const assert = require('node:assert');
const http = require('node:http');
const net = require('node:net');
const { spawnSync } = require('node:child_process');
const { once } = require('node:events');
const gat = require('./tailwright-gat.js');

// A test that waits forever ends with what is left to do: nothing.
process.exitCode = 1;
const sloNsOf = ({ url }) => {
  if (url === '/throws') throw new Error('an error of the service');
  return url === '/fraction' ? 0.5 : null;
};
gat.install({ hosts: '127.0.0.1,localhost', role: new gat.Edge({ sloNsOf }) });

const FORGED = 'tailwright-start=1,user=7';
const HEADS = { Host: 'a', Connection: 'close', Baggage: FORGED };

async function listen(server) {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server.address().port;
}

/** All that a server answers to these bytes until it closes. */
async function exchange(port, text) {
  const socket = net.connect(port, '127.0.0.1');
  socket.end(text);
  let reply = '';
  for await (const piece of socket.setEncoding('latin1')) reply += piece;
  return reply;
}

const message = (firstLine, headers = {}, body = '') => {
  const lines = Object.entries({ ...HEADS, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${firstLine} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
};

/** A server of one listener, and what it answers to the bytes. */
async function serve(event, listener, text) {
  const server = http.createServer();
  server.on(event, listener);
  const reply = await exchange(await listen(server), text);
  server.close();
  return reply;
}

/** What a request carries in every form of its headers. */
function checkStamped(request) {
  const value = `tailwright-start=${gat.current().startNs},user=7`;
  assert.strictEqual(request.headers.baggage, value);
  assert.deepStrictEqual(request.headersDistinct.baggage, [value]);
  const raw = request.rawHeaders;
  assert.deepStrictEqual(raw.filter((_, at) => /^baggage$/i.test(raw[at - 1])), [value]);
  assert(!JSON.stringify([raw, request.headers]).includes('start=1,'));
}

async function testEventsThatHandOutRequests() {
  const seen = [];
  const see = (event) => (request, reply) => {
    checkStamped(request);
    seen.push(event);
    if (reply instanceof http.ServerResponse) return reply.end();
    const tag = gat.current();
    reply.on('data', () => {});
    reply.on('end', () => {
      assert.strictEqual(gat.current(), tag, event);
      seen.push(`end of ${event}`);
      reply.end();
    });
    reply.resume();
  };
  await serve('checkContinue', see('checkContinue'), message('GET /', { Expect: '100-continue' }));
  await serve('checkExpectation', see('checkExpectation'), message('GET /', { Expect: 'more' }));
  await serve('connect', see('connect'), message('CONNECT a:1'));
  await serve('upgrade', see('upgrade'), message('GET /', { Connection: 'upgrade', Upgrade: 'x' }));
  await serve('request', see('request'), message('GET /'));
  const expected = ['checkContinue', 'checkExpectation', 'connect', 'end of connect', 'upgrade', 'end of upgrade', 'request'];
  assert.deepStrictEqual(seen, expected);
}

async function testASecondPassKeepsTheFirstStamp() {
  const stamps = [];
  const server = http.createServer((request, reply) => {
    checkStamped(request);
    stamps.push(gat.current());
    reply.end();
  });
  server.on('checkContinue', (request, reply) => {
    stamps.push(gat.current());
    reply.writeContinue();
    server.emit('request', request, reply);
  });
  await exchange(await listen(server), message('GET /', { Expect: '100-continue' }));
  server.close();
  assert.strictEqual(stamps.length, 2);
  assert.strictEqual(stamps[0], stamps[1]);
}

async function testEventsOfBodies() {
  let seen = 0;
  const listener = (request, reply) => {
    const tag = gat.current();
    const check = () => {
      assert.strictEqual(gat.current(), tag);
      seen += 1;
    };
    request.on('data', check).on('end', check).on('end', () => reply.end());
    reply.on('finish', check);
  };
  const first = message('POST /', { 'Content-Length': 2, Connection: 'keep-alive' }, 'ab');
  await serve('request', listener, first + message('POST /', { 'Content-Length': 2 }, 'cd'));
  assert.strictEqual(seen, 6);
}

async function testReplies() {
  const own = ['tailwright-start=5', 'own=1'];
  const table = Object.assign(Object.create(null), { Baggage: own, 'X-Other': ['1', '2'] });
  const listeners = [
    (_, reply) => reply.writeHead(200, table).end(),
    (_, reply) => reply.writeHead(200, { baggage: own, 'x-other': ['1', '2'] }).end(),
    (_, reply) => reply.writeHead(200, ['Baggage', own[0], 'X-Other', '1', 'baggage', own[1], 'x-other', '2']).end(),
    (_, reply) => reply.setHeader('BAGGAGE', own).setHeader('X-Other', ['1', '2']).writeHead(200).end(),
    (_, reply) => {
      reply.writeEarlyHints({ link: '</a>; rel=preload', Baggage: own.join() });
      reply.setHeader('Trailer', 'Baggage').setHeader('X-Other', ['1', '2']).write('x');
      reply.addTrailers({ Baggage: own.join() });
      reply.end();
    },
  ];
  for (const listener of listeners) {
    const reply = await serve('request', listener, message('GET /'));
    assert(reply.includes(' 200 OK') && !reply.includes('tailwright'), reply);
    assert.match(reply, /baggage: own=1\r\n/);
    assert.match(reply, /x-other: 1\r\nx-other: 2\r\n/i);
  }
  const early = await serve('request', listeners.at(-1), message('GET /'));
  assert.strictEqual(early.match(/baggage: own=1\r\n/g).length, 2, early);
}

/** The baggage that a call carries which is made in a request. */
async function carried(make, later = () => {}) {
  const seen = new Promise((resolve) => {
    const target = net.createServer((socket) => {
      let head = '';
      socket.on('data', (piece) => {
        head += piece;
        if (!head.includes('\r\n\r\n')) return;
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
        target.close();
        resolve(head.match(/^baggage: (.*)\r$/im)?.[1]);
      });
    });
    target.listen(0, '127.0.0.1', () => {
      let tag;
      const listener = (_, reply) => {
        tag = gat.current();
        const call = make(target.address().port);
        call.on('error', assert.fail).on('response', (answer) => answer.resume());
        later(call);
        reply.end();
      };
      serve('request', listener, message('GET /'));
    });
  });
  return seen;
}

/** Sends calls to a proxy, as agents of packages do. */
class ProxyAgent extends http.Agent {
  constructor(port) {
    super();
    this.proxyPort = port;
  }

  addRequest(call, options) {
    call.path = `http://${options.host}${call.path}`;
    super.addRequest(call, { ...options, host: '127.0.0.1', port: this.proxyPort });
  }
}

async function testCalls() {
  const tagged = /^tailwright-start=\d{19},own=1$/;
  const headers = { baggage: 'own=1' };
  const options = (port) => ({ host: '127.0.0.1', port, headers });
  assert.match(await carried((port) => http.get(options(port))), tagged);
  assert.match(await carried((port) => http.request({ ...options(port), path: 'http://localhost/' }).end()), tagged);
  // An agent makes it a call of a proxy that nothing names.
  const own = { ...options(0), host: 'localhost' };
  assert.strictEqual(await carried((port) => http.get({ ...own, agent: new ProxyAgent(port) })), 'own=1');
  for (const path of ['http://third.example/', 'HTTP://third.example:1/', 'http://[/']) {
    assert.strictEqual(await carried((port) => http.request({ ...options(port), path }).end()), 'own=1', path);
  }
  const pairs = ['Host', 'a', 'Baggage', 'own=1'];
  assert.match(await carried((port) => http.request({ ...options(port), headers: pairs }).end()), tagged);
  // A call that is made in a request and written outside of it.
  const calls = [];
  const timer = setInterval(() => calls.splice(0).forEach((call) => call.end()), 5);
  assert.match(await carried((port) => http.request(options(port)), (call) => calls.push(call)), tagged);
  clearInterval(timer);
}

/** A function of SLOs that fails costs its request, not the service. */
async function testFailingSlos() {
  const warnings = [];
  process.on('warning', (warning) => warnings.push(warning.message));
  const server = http.createServer((_, reply) => reply.end('served'));
  server.on('upgrade', (_, socket) => socket.end('HTTP/1.1 101 Upgraded\r\n\r\n'));
  const port = await listen(server);
  for (const path of ['/throws', '/fraction']) {
    assert.match(await exchange(port, message(`GET ${path}`)), /^HTTP\/1.1 500 /);
    const upgrade = { Connection: 'Upgrade', Upgrade: 'test' };
    assert.strictEqual(await exchange(port, message(`GET ${path}`, upgrade)), '');
  }
  assert.match(await exchange(port, message('GET /')), /served/);
  server.close();
  assert.deepStrictEqual(warnings.map((text) => /an error of the service|an SLO of 0.5 ns/.test(text)), Array(4).fill(true));
}

function testPreloading() {
  const env = { ...process.env, TAILWRIGHT_ROLE: 'nobody' };
  const isInstalled = (args, more = {}) => {
    const child = spawnSync(process.execPath, args, { cwd: __dirname, env: { ...env, ...more }, encoding: 'utf8' });
    return child.status !== 0 && child.stderr.includes('expected edge or inner');
  };
  assert(isInstalled(['--require', './tailwright-gat.js', '-e', '0']));
  assert(isInstalled(['--import', './tailwright-gat.js', '-e', '0']));
  assert(isInstalled([`--import=${require('node:url').pathToFileURL(`${__dirname}/tailwright-gat.js`)}`, '-e', '0']));
  assert(isInstalled(['-e', '0'], { NODE_OPTIONS: '--import ./tailwright-gat.js' }));
  assert(!isInstalled(['--input-type=module', '-e', "import './tailwright-gat.js'"]));
  assert(!isInstalled(['-e', "require('./tailwright-gat.js')"]));
}

function testFilesOfSlos() {
  const run = (slos) => {
    const env = { ...process.env, TAILWRIGHT_ROLE: 'edge', TAILWRIGHT_SLOS: slos };
    return spawnSync(process.execPath, ['--require', './tailwright-gat.js', '-e', '0'], { cwd: __dirname, env, encoding: 'utf8' });
  };
  assert.strictEqual(run('./example-slos.js').status, 0);
  for (const slos of ['/search=50ms', '../hosts.json', '']) {
    const refused = run(slos);
    assert.notStrictEqual(refused.status, 0);
    assert(refused.stderr.includes(`TAILWRIGHT_SLOS is '${slos}': expected a file`), refused.stderr);
  }
}

(async () => {
  await testEventsThatHandOutRequests();
  await testASecondPassKeepsTheFirstStamp();
  await testEventsOfBodies();
  await testReplies();
  await testCalls();
  await testFailingSlos();
  testPreloading();
  testFilesOfSlos();
  process.exitCode = 0;
})();
