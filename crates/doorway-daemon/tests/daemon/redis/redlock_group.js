// The locks of redlock for Node, version 4 and 5, with ioredis, over three nodes of a group.
//
// node redlock_group.js MODULES ADDRESSES PLACE, where MODULES is a directory of installed
// packages, ADDRESSES are the three nodes with commas between them, and PLACE has the certificates
// `ca.crt` and `ci.crt` and the key `ci.key`. When its input ends, one node has been killed.

"use strict";

const assert = require("assert");
const fs = require("fs");

const [modules, addresses, place] = process.argv.slice(2);
const Redis = require(`${modules}/ioredis`);
const { version } = require(`${modules}/redlock/package.json`);
const module_ = require(`${modules}/redlock`);
const Redlock = module_.default || module_;
const newer = !/^v?4/.test(version);

const read = (name) => fs.readFileSync(`${place}/${name}`);
const clients = addresses.split(",").map((address) => {
  const [host, port] = address.split(":");
  const tls = { ca: read("ca.crt"), cert: read("ci.crt"), key: read("ci.key") };
  const client = new Redis({ host, port: Number(port), tls, maxRetriesPerRequest: 0 });
  client.on("error", () => {}); // A node may be killed.
  return client;
});

const impatient = new Redlock(clients, { retryCount: 0 });
const patient = new Redlock(clients, { retryCount: 1000, retryDelay: 50, retryJitter: 50 });
for (const redlock of [impatient, patient]) {
  redlock.on(newer ? "error" : "clientError", () => {});
}

// Version 4 takes one name or several, version 5 always several.
const acquire = (redlock, names, ttl) =>
  newer ? redlock.acquire(names, ttl) : redlock.lock(names.length === 1 ? names[0] : names, ttl);
const release = (lock) => (newer ? lock.release() : lock.unlock());

async function check() {
  // Acquire, extend and release count the votes of the nodes, and need most of them.
  const lock = await acquire(patient, ["report"], 5000);
  await assert.rejects(acquire(impatient, ["report"], 5000));
  const longer = await lock.extend(9000);
  await assert.rejects(acquire(impatient, ["report"], 5000));
  await release(longer);
  const both = await acquire(patient, ["report", "counter"], 5000);
  await assert.rejects(acquire(impatient, ["counter"], 5000));
  await release(both);

  // Version 5 tries again with the same value and keeps what it has got, here and with Redis. If an
  // attempt gets one of two nodes, the next ones get the other at most, until that lease is over.
  let inside = 0;
  let entries = 0;
  async function work() {
    for (let turn = 0; turn < 3; turn++) {
      const held = await acquire(patient, ["counter"], 2000);
      assert.strictEqual(++inside, 1);
      await new Promise((done) => setTimeout(done, 2));
      entries++;
      inside--;
      await release(held);
    }
  }
  await Promise.all([1, 2, 3].map(work));
  return entries;
}

async function main() {
  await Promise.all(clients.map((client) => client.ping()));
  console.log(`all nodes are well: ${await check()} entries`);
  await new Promise((done) => process.stdin.on("end", done).resume());
  console.log(`all is well with ${version}: ${await check()} entries with a node less`);
}

// The reasons of the nodes. Version 5 has them in promises.
async function explain(error) {
  console.error(error);
  for (const attempt of await Promise.all(error.attempts || [])) {
    console.error([...attempt.votesAgainst.values()].map(String));
  }
}

main().then(
  () => clients.forEach((client) => client.disconnect()),
  (error) => explain(error).then(() => process.exit(1)),
);
