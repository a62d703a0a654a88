'use strict';
// A service that calls others and tells what it knows: node --require ./tailwright-gat.js example-service.js [URL...], the
// first by node:http, the others by fetch. Prints its port. Only `current` is of tailwright-gat.js; tags pass without it.
const http = require('node:http');
const { current } = require('./tailwright-gat.js');

const headers = { Baggage: 'own=1' };

const callByHttp = (url) =>
  new Promise((resolve, reject) => {
    const request = http.request(url, { headers }, async (reply) => {
      try {
        let text = '';
        for await (const piece of reply) text += piece;
        resolve(JSON.parse(text));
      } catch (error) {
        reject(error);
      }
    });
    request.on('error', reject).end();
  });

const callByFetch = async (url) => (await fetch(url, { headers })).json();

const server = http.createServer(async (request, reply) => {
  const called = [];
  try {
    for (const [at, url] of process.argv.slice(2).entries()) called.push(await (at === 0 ? callByHttp : callByFetch)(url));
  } catch (error) {
    reply.writeHead(502).end(String(error));
    return;
  }
  const answer = { start: String(current().startNs), baggage: request.headers.baggage, called };
  reply.setHeader('Baggage', 'tailwright-start=1,reply=1');
  reply.end(JSON.stringify(answer));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
