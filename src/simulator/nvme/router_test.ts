import assert from "node:assert/strict";
import { control } from "../../../tests/support/control_port.ts";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { discover } from "../../nvme/discover.ts";
import { connectSubsystem, type HostConnection } from "../../nvme/host_connection.ts";
import { refusalOf } from "../../nvme/refusal.ts";
import type { Simulator } from "../simulator.ts";
import {
  addCommand,
  makeBasePath,
  SshClient,
  startQuickly,
} from "../../../tests/support/simulated_router.ts";
import { call, hostNqn, nqn } from "../../../tests/support/nvme_target.ts";
import { freePort } from "../../../tests/support/parts.ts";
import { makeScratch } from "../../../tests/support/scratch.ts";

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
  test: (exported: Exported) => Promise<void>,
  options: { readonly backingDirectory?: string } = {},
): Promise<void> {
  const clock = new FakeClock();
  await using simulator = await startQuickly({ clock, exporter: "tcp", ...options });
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

Deno.test("a withdrawn export ends at once, and another epoch is another subsystem", async () => {
  await exporting(async ({ type, connect, refusal, found }) => {
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

for (
  const [identity, kept] of [["new-per-export", false], ["kept", true]] as const
) {
  Deno.test(`identity=${identity}: a toggle and a reboot ${kept ? "keep" : "change"} the UUID`, async () => {
    await exporting(async ({ simulator, clock, type, connect }) => {
      simulator.model.configure(undefined, { identity, bootIdentity: kept ? "kept" : "new" });
      const uuid = async () => {
        await using host = await connect();
        const { nguid, uuid } = await host.namespaceIdentity(call());
        assert.equal(nguid, "", "a router shows no NGUID");
        return uuid;
      };
      const toggle = () => type('/disk set "a" nvme-tcp-export="no"; /disk set "a" nvme-tcp-export="yes"');
      await toggle();
      const seen = [await uuid()];
      assert.equal(await uuid(), seen[0], "it is the same while the export stays on");
      await toggle();
      seen.push(await uuid());
      await type('/disk set "a" comment="x"');
      assert.equal(await uuid(), seen[1], "a change of something else keeps it");
      await control(simulator, "POST /reboot", { downMs: 1000 });
      await clock.advance(1000);
      seen.push(await uuid());
      assert.equal(new Set(seen).size, kept ? 1 : 3);
    });
  });
}

Deno.test("a single reboot may keep identities, or give new ones, whatever the others do", async () => {
  await exporting(async ({ simulator, clock, connect }) => {
    const seen: string[] = [];
    for (const bootIdentity of ["kept", "kept", "new", "kept"] as const) {
      await control(simulator, "POST /reboot", { downMs: 1000, bootIdentity });
      await clock.advance(1000);
      await using host = await connect();
      seen.push((await host.namespaceIdentity(call())).uuid);
    }
    assert.deepEqual(seen.map((uuid) => seen.indexOf(uuid)), [0, 0, 2, 2]);
  });
});

for (const nvmePort of ["before", "after"] as const) {
  Deno.test(`after a reboot the NVMe port takes connections ${nvmePort} the exports are back`, async () => {
    await exporting(async ({ simulator, clock, connect, refusal, found }) => {
      await using host = await connect();
      await control(simulator, "POST /reboot", { downMs: 1000, disksLateMs: 5000, nvmePort });
      await host.ended;
      assert.equal(await refusal(), "gone");
      await clock.advance(1000);
      assert.equal(await refusal(), nvmePort === "before" ? "no-subsystem" : "gone");
      await clock.advance(5000);
      assert.deepEqual(await found(), [nqn]);
      await using again = await connect();
      assert.equal(await again.namespaceBytes(call()), 1n << 30n);
    });
  });
}

Deno.test("a host reads what is in the disk's file", async () => {
  await using scratch = await makeScratch();
  const backingDirectory = scratch.path;
  await exporting(async ({ connect }) => {
    const path = `${backingDirectory}/files/storage-pool/metal-csi/a.img`;
    using file = await Deno.open(path, { write: true });
    await file.write(new TextEncoder().encode("content"));
    await using host = await connect();
    const bytes = await host.read(0n, 1, call());
    assert.equal(new TextDecoder().decode(bytes).replace(/\0+$/, ""), "content");
  }, { backingDirectory });
});

Deno.test("a simulator whose NVMe port is taken does not start, and one that cannot start frees its own", async () => {
  await using simulator = await startQuickly({ exporter: "tcp" });
  const { nvmePort: taken = 0, sshPort } = simulator;
  await assert.rejects(startQuickly({ exporter: "tcp", nvmePort: taken }), Deno.errors.AddrInUse);
  const port = freePort();
  await assert.rejects(startQuickly({ exporter: "tcp", nvmePort: port, sshPort }));
  await assert.rejects(startQuickly({ exporter: "tcp", nvmePort: port, profile: "ros-1" }), RangeError);
  Deno.listen({ hostname: "127.0.0.1", port }).close();
});
