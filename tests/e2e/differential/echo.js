// Writes down each whole request that node has read, and answers 299.
'use strict';
const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');

const [address, certificate, key] = process.argv.slice(2);

function note(line) {
  fs.appendFileSync(process.env.READINGS, JSON.stringify(line) + '\n');
}

function values(request, name) {
  const raw = request.rawHeaders;
  return raw.filter((_, at) => at % 2 === 1 && raw[at - 1].toLowerCase() === name);
}

function start(server, port) {
  server.on('request', (request, answer) => {
    const pieces = [];
    // One that was cut is none.
    request.on('error', () => {});
    request.on('data', (piece) => pieces.push(piece));
    request.on('end', () => {
      note({
        port,
        method: request.method,
        target: request.url,
        host: values(request, 'host'),
        injected: values(request, 'x-injected'),
        body: Buffer.concat(pieces).toString('hex'),
      });
      answer.writeHead(299);
      answer.end();
    });
  });
  const refused = new WeakSet();
  server.on('clientError', (error, socket) => {
    const cut = error.code === 'HPE_INVALID_EOF_STATE';
    // What comes behind the first fault is not read, but told of.
    if (!cut && error.rawPacket && !refused.has(socket)) {
      refused.add(socket);
      note({ port, line: error.rawPacket.toString('latin1').split('\r\n')[0] });
    }
    if (socket.writable) {
      socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    }
  });
  server.keepAliveTimeout = 60_000;
  server.listen(Number(port), address);
}

start(http.createServer(), '80');
start(
  https.createServer({ cert: fs.readFileSync(certificate), key: fs.readFileSync(key) }),
  '443',
);
