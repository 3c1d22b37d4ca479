import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { discover } from "../../nvme/discover.ts";
import { connectSubsystem, type HostConnection } from "../../nvme/host_connection.ts";
import { refusalOf } from "../../nvme/refusal.ts";
import type { Knobs } from "../behaviours.ts";
import type { Simulator } from "../simulator.ts";
import { addCommand, makeBasePath, SshClient, startQuickly } from "../simulator_test_support.ts";
import { call, hostNqn, nqn } from "./target_test_support.ts";

interface Exported {
  readonly simulator: Simulator;
  readonly clock: FakeClock;
  type(command: string): Promise<string>;
  connect(name?: string): Promise<HostConnection>;
  refusal(name?: string): Promise<string | undefined>;
  found(): Promise<readonly string[]>;
}

/** A router that exports the disk `a`. */
async function exporting(
  knobs: Partial<Knobs>,
  test: (exported: Exported) => Promise<void>,
  options: { readonly backingDirectory?: string } = {},
): Promise<void> {
  const clock = new FakeClock();
  await using simulator = await startQuickly({ clock, knobs, exporter: "tcp", ...options });
  using client = await SshClient.connect(simulator);
  const { nvmePort: port = 0 } = simulator;
  const hostId = "11111111-1111-4111-8111-111111111111";
  const where = { address: "127.0.0.1", port, hostNqn, hostId };
  const connect = (name = nqn) => connectSubsystem({ ...where, nqn: name }, call());
  const type = async (command: string) => (await client.exec(command)).stdout;
  await type(makeBasePath);
  await type(
    addCommand("a", `nvme-tcp-export="yes" nvme-tcp-server-nqn="${nqn}" nvme-tcp-server-port="${port}"`),
  );
  await test({
    ...{ simulator, clock, type, connect },
    refusal: (name) =>
      connect(name).then(() => assert.fail("connected"), (error) => refusalOf(error) ?? "gone"),
    found: async () => (await discover(where, call())).map((subsystem) => subsystem.nqn),
  });
}

const oneGiB = 1n << 30n;
const toggle = '/disk set "a" nvme-tcp-export="no"; /disk set "a" nvme-tcp-export="yes"';

for (
  const [grow, connected, toggled] of [
    ["live", 2n, 2n],
    ["after-toggle", 1n, 2n],
    ["never", 1n, 1n],
  ] as const
) {
  Deno.test(`with grow=${grow} a connected host sees ${connected} GiB of 2, and ${toggled} after an export toggle`, async () => {
    await exporting({ grow }, async ({ type, connect }) => {
      await using host = await connect();
      await type('/disk set "a" file-size="2147483648"');
      assert.equal(await host.namespaceBytes(call()), connected * oneGiB);
      await type(toggle);
      await host.ended;
      await using again = await connect();
      assert.equal(await again.namespaceBytes(call()), toggled * oneGiB);
    });
  });
}

Deno.test("a withdrawn export ends at once, and another epoch is another subsystem", async () => {
  await exporting({}, async ({ type, connect, refusal, found }) => {
    await using host = await connect();
    const next = nqn.replace(":1-", ":2-");
    await type(`/disk set "a" nvme-tcp-export="no"`);
    await host.ended;
    assert.deepEqual([await refusal(), await found()], ["no-subsystem", []]);
    await type(`/disk set "a" nvme-tcp-export="yes" nvme-tcp-server-nqn="${next}"`);
    assert.deepEqual([await refusal(), await found()], ["no-subsystem", [next]]);
    await using again = await connect(next);
    await again.keepAlive(call());
  });
});

Deno.test("a withdrawn export lingers for those who are connected, as long as the knob says", async () => {
  await exporting({ unexport: 5000 }, async ({ clock, type, connect, refusal, found }) => {
    await using host = await connect();
    await type('/disk remove "a"');
    await clock.advance(4999);
    assert.equal((await host.read(0n, 8, call())).length, 4096);
    assert.deepEqual([await refusal(), await found()], ["no-subsystem", []]);
    await clock.advance(1);
    await host.ended;
  });
});

const lists: readonly (readonly [Knobs["allowHost"], names: string, outcome: string | undefined])[] = [
  ["list", hostNqn, undefined],
  ["list", `nqn.else,${hostNqn}`, undefined],
  ["list", "nqn.else", "host"],
  ["single", hostNqn, undefined],
  ["single", `nqn.else,${hostNqn}`, "host"],
  ["ignored", "nqn.else", undefined],
  ["list", "", undefined],
];

for (const [allowHost, names, outcome] of lists) {
  Deno.test(`with allowHost=${allowHost} and "${names}" a host is ${outcome === undefined ? "let in" : "refused"}`, async () => {
    await exporting({ allowHost }, async ({ type, connect, refusal }) => {
      assert.equal(await type(`/disk set "a" nvme-tcp-server-allow-host-name="${names}"`), "");
      if (outcome !== undefined) return assert.equal(await refusal(), outcome);
      await using host = await connect();
      await host.keepAlive(call());
    });
  });
}

for (const nvmePort of ["before", "after"] as const) {
  Deno.test(`after a reboot the NVMe port takes connections ${nvmePort} the exports are back`, async () => {
    await exporting({}, async ({ simulator, clock, connect, refusal, found }) => {
      await using host = await connect();
      const response = await fetch(`${simulator.controlUrl}/reboot`, {
        method: "POST",
        body: JSON.stringify({ downMs: 1000, disksLateMs: 5000, nvmePort }),
      });
      await response.body?.cancel();
      await host.ended;
      assert.equal(await refusal(), "gone");
      await clock.advance(1000);
      assert.equal(await refusal(), nvmePort === "before" ? "no-subsystem" : "gone");
      await clock.advance(5000);
      assert.deepEqual(await found(), [nqn]);
      await using again = await connect();
      assert.equal(await again.namespaceBytes(call()), oneGiB);
    });
  });
}

Deno.test("a host reads what is in the disk's file", async () => {
  const backingDirectory = await Deno.makeTempDir();
  try {
    await exporting({}, async ({ connect }) => {
      const path = `${backingDirectory}/files/storage-pool/metal-csi/a.img`;
      using file = await Deno.open(path, { write: true });
      await file.write(new TextEncoder().encode("content"));
      await using host = await connect();
      const bytes = await host.read(0n, 1, call());
      assert.equal(new TextDecoder().decode(bytes).replace(/\0+$/, ""), "content");
    }, { backingDirectory });
  } finally {
    await Deno.remove(backingDirectory, { recursive: true });
  }
});

Deno.test("a simulator whose NVMe port is taken does not start, and one that cannot start frees its own", async () => {
  await using simulator = await startQuickly({ exporter: "tcp" });
  const { nvmePort: taken = 0, sshPort } = simulator;
  await assert.rejects(startQuickly({ exporter: "tcp", nvmePort: taken }), Deno.errors.AddrInUse);
  const free = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = free.addr;
  free.close();
  await assert.rejects(startQuickly({ exporter: "tcp", nvmePort: port, sshPort }));
  await assert.rejects(startQuickly({ exporter: "tcp", nvmePort: port, profile: "ros-1" }), RangeError);
  Deno.listen({ hostname: "127.0.0.1", port }).close();
});
