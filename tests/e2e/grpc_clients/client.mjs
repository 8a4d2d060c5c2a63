// Every kind of call through a gateway: node client.mjs NAME DOWN DENIED WAY
//
// DOWN is a name whose server is not there, DENIED one that no entry allows; WAY says whether the
// gateway is known as a proxy ("proxy") or not at all ("sandbox"). Nothing else is configured.

import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, Metadata, credentials, status } from "@grpc/grpc-js";

const [name, down, denied, way] = process.argv.slice(2);
const pass = (bytes) => bytes;
const mine = new Metadata();
mine.set("authorization", "mine");

const open = (host) =>
  new Client(`${host}:443`, credentials.createSsl(), { "grpc.keepalive_time_ms": 1000 });
const path = (method) => `/test.Echo/${method}`;
const soon = (milliseconds = 20_000) => ({ deadline: Date.now() + milliseconds });

function unary(client, method, message, options = soon()) {
  return new Promise((resolve, reject) => {
    const told = (error, answer) => (error ? reject(error) : resolve(answer.toString()));
    client.makeUnaryRequest(path(method), pass, pass, Buffer.from(message), mine, options, told);
  });
}

async function refused(host, method, code, words, options) {
  const client = open(host);
  const error = await unary(client, method, "hello", options).then(
    () => assert.fail(`${host} ${method}: it was not refused`),
    (error) => error,
  );
  assert.equal(error.code, code, String(error));
  for (const word of words) assert.ok(error.details.includes(word), error.details);
  client.close();
  return error;
}

const server = open(name);
assert.equal(await unary(server, "Unary", "hello"), "HELLO");
const large = "x".repeat(1_000_000);
assert.equal(await unary(server, "Unary", large), large.toUpperCase());

await new Promise((resolve, reject) => {
  const told = (error, answer) => {
    if (error) return reject(error);
    assert.equal(answer.toString(), "a,b,c");
    resolve();
  };
  const call = server.makeClientStreamRequest(path("ClientStream"), pass, pass, mine, soon(), told);
  for (const message of ["a", "b", "c"]) call.write(Buffer.from(message));
  call.end();
});

const came = [];
const three = Buffer.from("3");
const stream = server.makeServerStreamRequest(path("ServerStream"), pass, pass, three, mine, soon());
for await (const message of stream) came.push([Date.now(), message.toString()]);
assert.deepEqual(came.map((one) => one[1]), ["0", "1", "2"]);
assert.ok(came[2][0] - came[0][0] > 600, String(came));

// One message at a time: the next is not sent before the last has come back.
const bidi = server.makeBidiStreamRequest(path("Bidi"), pass, pass, mine, soon(40_000));
for (let number = 0; number < 5; number++) {
  const sent = Date.now();
  bidi.write(Buffer.from(`message ${number}`));
  const [answer] = await once(bidi, "data");
  assert.equal(answer.toString(), `MESSAGE ${number}`);
  assert.ok(Date.now() - sent < 2000);
  // Silent but for pings, for longer than the gateway's limit for what is idle.
  await sleep(number === 2 ? 4000 : 200);
}
bidi.end();
const [ended] = await once(bidi, "status");
assert.equal(ended.code, status.OK);

const remaining = Number(await unary(server, "Left", "", soon(7000)));
// Without a gateway too grpcio shows its server a few milliseconds more than were asked for.
assert.ok(remaining > 4 && remaining < 7.5, String(remaining));
await refused(name, "Slow", status.DEADLINE_EXCEEDED, [], soon(500));
await refused(name, "Fails", status.OUT_OF_RANGE, ["by the server itself: 100 %"]);

const forbidden = ["denied_by_entry", name];
const error = await refused(name, "Forbidden", status.PERMISSION_DENIED, forbidden);
assert.deepEqual(error.metadata.get("outgate-reason"), ["denied_by_entry"]);
await refused(down, "Unary", status.UNAVAILABLE, ["origin_connect", down]);
if (way === "sandbox") {
  await refused(denied, "Unary", status.PERMISSION_DENIED, ["domain_not_allowed", denied]);
} else {
  // The proxy itself says so, and has no trailers.
  await refused(denied, "Unary", status.UNAVAILABLE, []);
}
server.close();
console.log("all of it worked");
