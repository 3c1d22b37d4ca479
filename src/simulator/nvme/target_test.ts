import assert from "node:assert/strict";
import { connectSubsystem } from "../../nvme/host_connection.ts";
import { discover } from "../../nvme/discover.ts";
import { isRefusedCommand, refusalOf } from "../../nvme/refusal.ts";
import { VolumeError } from "../../volume/errors.ts";
import { call, hostNqn, nqn, withTarget } from "../../../tests/support/nvme_target.ts";

Deno.test("a host sees the disk's size, its identity and its content", async () => {
  await withTarget(async ({ where, file, access }) => {
    await using host = await connectSubsystem(where, call());
    assert.equal(await host.namespaceBytes(call()), 4n << 20n);
    assert.deepEqual(await host.namespaces(call()), [1]);
    const uuid = access.identity.uuid.replaceAll("-", "");
    assert.deepEqual(await host.namespaceIdentity(call()), { nguid: "", eui64: "", uuid });
    await host.keepAlive(call());
    const content = await Deno.readFile(file);
    assert.deepEqual(await host.read(0n, 8192, call()), content);
    assert.deepEqual(await host.read(7n, 1, call()), content.subarray(3584, 4096));
  });
});

Deno.test("a read beyond the end is refused, and the connection goes on", async () => {
  await withTarget(async ({ where }) => {
    await using host = await connectSubsystem(where, call());
    await assert.rejects(host.read(8191n, 2, call()), /LBA out of range/);
    await assert.rejects(host.read(2n ** 63n, 1, call()), /LBA out of range/);
    assert.equal((await host.read(8191n, 1, call())).length, 512);
  });
});

for (
  const [lba, blocks] of [[0n, 0], [0n, -1], [0n, 1.5], [0n, 32_769], [-1n, 1], [
    (1n << 64n) - 1n,
    2,
  ]] as const
) {
  Deno.test(`a host does not read ${blocks} blocks from ${lba} on`, async () => {
    await withTarget(async ({ where }) => {
      await using host = await connectSubsystem(where, call());
      await assert.rejects(host.read(lba, blocks, call()), (error) => VolumeError.is(error, "invalid"));
    });
  });
}

Deno.test("a disk in memory reads as zeros, also beyond the file's real end", async () => {
  await withTarget(async ({ target, where, access }) => {
    target.serve("nqn.memory", undefined, { ...access, sizeBytes: 1n << 40n });
    await using host = await connectSubsystem({ ...where, nqn: "nqn.memory" }, call());
    assert.equal(await host.namespaceBytes(call()), 1n << 40n);
    assert.deepEqual(await host.read(2n ** 31n - 8n, 8, call()), new Uint8Array(4096));
    target.change(nqn, { ...access, sizeBytes: 8n << 20n });
    await using short = await connectSubsystem(where, call());
    assert.deepEqual(await short.read(8192n, 1, call()), new Uint8Array(512));
  });
});

Deno.test("a disk whose file is gone cannot be read", async () => {
  await withTarget(async ({ target, where, access }) => {
    target.serve("nqn.gone", "/nonexistent/a.img", access);
    await using host = await connectSubsystem({ ...where, nqn: "nqn.gone" }, call());
    await assert.rejects(host.read(0n, 1, call()), /unrecovered read error/);
  });
});

Deno.test("the discovery log names every export of the port, where the host has come", async () => {
  await withTarget(async ({ target, where, access }) => {
    for (let i = 0; i < 100; i++) target.serve(`nqn.more:${i}`, undefined, access);
    target.serve("nqn.elsewhere", undefined, { ...access, port: 1 });
    target.serve("nqn.lingering", undefined, access);
    target.linger("nqn.lingering");
    const found = await discover(where, call());
    assert.deepEqual(found[0], { nqn, address: "127.0.0.1", port: target.port, transport: "tcp" });
    assert.deepEqual(
      found.map((subsystem) => subsystem.nqn),
      [nqn, ...Array.from({ length: 100 }, (_, i) => `nqn.more:${i}`)],
    );
  });
});

Deno.test("the discovery log of a port without exports is empty", async () => {
  await withTarget(async ({ target, where }) => {
    target.withdraw(nqn);
    assert.deepEqual(await discover(where, call()), []);
  });
});

Deno.test("a withdrawn export cuts its hosts off at once, and nobody else", async () => {
  await withTarget(async ({ target, where, access }) => {
    target.serve("nqn.other", undefined, access);
    await using host = await connectSubsystem(where, call());
    await using other = await connectSubsystem({ ...where, nqn: "nqn.other" }, call());
    target.withdraw(nqn);
    assert.equal(await host.ended, "the target closed the connection");
    await assert.rejects(host.keepAlive(call()), (error) => VolumeError.is(error, "unavailable"));
    await other.keepAlive(call());
    await assert.rejects(connectSubsystem(where, call()), (error) => refusalOf(error) === "no-subsystem");
  });
});

Deno.test("an export that lingers serves on who is connected, and refuses everybody else", async () => {
  await withTarget(async ({ target, where, access, file }) => {
    await using host = await connectSubsystem(where, call());
    target.linger(nqn);
    assert.equal((await host.read(0n, 1, call())).length, 512);
    await assert.rejects(connectSubsystem(where, call()), (error) => refusalOf(error) === "no-subsystem");
    target.serve(nqn, file, access);
    await using again = await connectSubsystem(where, call());
    await Promise.all([host.keepAlive(call()), again.keepAlive(call())]);
    target.linger(nqn);
    target.withdraw(nqn);
    await Promise.all([host.ended, again.ended]);
  });
});

Deno.test("an export whose namespace is taken away refuses the commands of hosts that stay connected", async () => {
  await withTarget(async ({ target, where, access, file }) => {
    await using host = await connectSubsystem(where, call());
    target.refuse(nqn);
    await assert.rejects(host.read(0n, 1, call()), isRefusedCommand);
    await host.keepAlive(call());
    await assert.rejects(connectSubsystem(where, call()), (error) => refusalOf(error) === "no-subsystem");
    target.serve(nqn, file, access);
    await using again = await connectSubsystem(where, call());
    assert.equal((await again.read(0n, 1, call())).length, 512);
    await assert.rejects(host.read(0n, 1, call()), isRefusedCommand);
  });
});

Deno.test("another file under the same name cuts off who is connected to the first", async () => {
  await withTarget(async ({ target, where, access }) => {
    await using host = await connectSubsystem(where, call());
    target.serve(nqn, undefined, access);
    await host.ended;
    await using again = await connectSubsystem(where, call());
    assert.deepEqual(await again.read(0n, 1, call()), new Uint8Array(512));
  });
});

Deno.test("only hosts on the list may connect and see the export; those connected stay when the list changes", async () => {
  await withTarget(async ({ target, where, access }) => {
    target.change(nqn, { ...access, hosts: ["nqn.else", hostNqn] });
    await using host = await connectSubsystem(where, call());
    assert.equal((await discover(where, call())).length, 1);
    target.change(nqn, { ...access, hosts: ["nqn.else"] });
    await host.keepAlive(call());
    await assert.rejects(
      connectSubsystem(where, call()),
      (error) =>
        refusalOf(error) === "host" && VolumeError.is(error, "unavailable") &&
        /refuses this host/.test(error.message),
    );
    assert.deepEqual(await discover(where, call()), []);
  });
});

Deno.test("a disk is reached only on the port that it names", async () => {
  await withTarget(async ({ target, where, access }) => {
    await using host = await connectSubsystem(where, call());
    target.change(nqn, { ...access, port: 1 });
    await host.ended;
    await assert.rejects(connectSubsystem(where, call()), (error) => refusalOf(error) === "no-subsystem");
    target.change(nqn, access);
    await using again = await connectSubsystem(where, call());
    await again.keepAlive(call());
  });
});

Deno.test("a target that does not listen drops everybody, and takes them again later", async () => {
  await withTarget(async ({ target, where }) => {
    await using host = await connectSubsystem(where, call());
    target.listen(false);
    await host.ended;
    await assert.rejects(
      connectSubsystem(where, call()),
      (error) => VolumeError.is(error, "unavailable") && refusalOf(error) === undefined,
    );
    target.listen(true);
    await using again = await connectSubsystem(where, call());
    await again.keepAlive(call());
  });
});

Deno.test("many hosts connect at once and read the same, and all of them are gone afterwards", async () => {
  await withTarget(async ({ target, where, file }) => {
    const content = (await Deno.readFile(file)).subarray(0, 65_536);
    const hosts = await Promise.all(Array.from({ length: 20 }, () => connectSubsystem(where, call())));
    const reads = await Promise.all(hosts.map((host) => host.read(0n, 128, call())));
    assert.equal(reads.every((bytes) => bytes.every((byte, at) => byte === content[at])), true);
    assert.equal(target.connections, 40);
    await Promise.all(hosts.map((host) => host[Symbol.asyncDispose]()));
    while (target.connections > 0) await new Promise((resolve) => setTimeout(resolve, 1));
  });
});

Deno.test("a host that says no more is dropped after its keep-alive time", async () => {
  await withTarget(async ({ clock, where }) => {
    await using host = await connectSubsystem(where, call(), { keepAliveMs: 600_000 });
    await clock.advance(601_000);
    await host.keepAlive(call());
    await clock.advance(601_000);
    await host.keepAlive(call());
    await clock.advance(602_000);
    await host.ended;
  });
});
