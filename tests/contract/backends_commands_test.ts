// Commands that read the file of several routers.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { adoptCommand } from "../../src/cli/adopt/adopt.ts";
import { allowFormatCommand } from "../../src/cli/allow_format.ts";
import { auditCommand } from "../../src/cli/audit/audit.ts";
import { doctorCommand } from "../../src/cli/doctor/doctor.ts";
import { importCommand } from "../../src/cli/import.ts";
import type { CommandIo } from "../../src/cli/io.ts";
import { releaseCommand } from "../../src/cli/release.ts";
import { withdrawCommand } from "../../src/cli/withdraw.ts";
import { FlagError } from "../../src/cli/flags.ts";
import { backendClusterHash } from "../../src/volume/model/ids/cluster_hash.ts";
import { fakeCommandIo } from "../fakes/command_io.ts";
import { type BackendsStack, routerState, slotsOf, startBackends } from "../support/backends_stack.ts";
import { block, createRequest, publishRequest } from "../support/controller_calls.ts";
import { clusterId } from "../support/stack.ts";

const two = [{ name: "nas1", isDefault: true }, { name: "nas2" }];

async function run(
  { file }: BackendsStack,
  command: (args: string[], io: CommandIo) => Promise<number>,
  ...args: string[]
) {
  const { io, out, err } = fakeCommandIo();
  const code = await command([...args, "--config", file, "--cluster-id", clusterId], io);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

async function create({ clients }: BackendsStack, name: string, backend: string): Promise<string> {
  const { volume } = await clients.controller.call(
    "CreateVolume",
    createRequest(name, { parameters: { backend } }),
  );
  return volume!.volumeId;
}

function refusal(form: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof FlagError, String(error));
    assert.match(error.message, form);
    return true;
  };
}

Deno.test("doctor and audit read all routers of a file, or the named one", async () => {
  await using stack = await startBackends(two);
  const id = await create(stack, "pvc-a", "nas2");
  const hash = backendClusterHash(clusterId, "nas2/");
  const part = `/storage-pool/metal-csi/pvc-part.${hash}.img.0011aabb.part`;
  await control(stack.simulators["nas2"]!, "POST /files", { name: part, type: "file", size: 1 << 20 });
  const checks = async (...args: string[]) =>
    (JSON.parse((await run(stack, doctorCommand, "--json", ...args)).out) as {
      check: string;
      state: string;
    }[])
      .filter(({ check }) => check.endsWith("/login"));
  assert.deepEqual((await checks()).map(({ check, state }) => [check, state]), [["nas1/login", "ok"], [
    "nas2/login",
    "ok",
  ]]);
  assert.deepEqual((await checks("--backend", "nas2")).map(({ check }) => check), ["nas2/login"]);
  const whole = await run(stack, auditCommand);
  assert.match(
    whole.out,
    /^router nas1:\naudit: 0 problems.*\nrouter nas2:\n.*\n.*unfinished-copy +pvc-part /,
  );
  const json = await run(stack, auditCommand, "--json", "--delete", "nas2/pvc-part");
  assert.deepEqual(
    json.out.split("\n").map((line) => JSON.parse(line)).map((
      { router, deleted },
    ) => [router, deleted.length]),
    [
      ["nas1", 0],
      ["nas2", 1],
    ],
  );
  assert.match((await run(stack, auditCommand)).out, /router nas2:\naudit: 0 problems/);
  for (const wanted of ["nas3/pvc-part", part]) {
    await assert.rejects(run(stack, auditCommand, "--delete", wanted), refusal(/--delete cannot be/));
  }
  await assert.rejects(
    run(stack, auditCommand, "--backend", "nas3"),
    refusal(/--backend cannot be "nas3"; use one of nas1, nas2/),
  );
  assert.deepEqual(await slotsOf(stack.simulators["nas2"]!), [id.slice("nas2/".length)]);
});

Deno.test("a router that is away does not stop the audit of the others, but the audit fails", async () => {
  await using stack = await startBackends(two);
  await stack.simulators["nas1"]!.close();
  const { code, out, err } = await run(stack, auditCommand);
  assert.equal(code, 1);
  assert.match(out, /router nas2:\naudit: 0 problems/);
  assert.match(err, /router nas1: Cannot ask the router/);
});

Deno.test("allow-format and release are for the router that the id or --backend names, and for no other", async () => {
  await using stack = await startBackends(two);
  const id = await create(stack, "pvc-a", "nas2");
  const slot = id.slice("nas2/".length);
  await stack.clients.controller.call("ControllerPublishVolume", publishRequest(id));
  await stack.clients.controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId: "node-1" });
  assert.equal((await run(stack, allowFormatCommand, id)).code, 0);
  assert.equal((await run(stack, allowFormatCommand, slot, "--backend", "nas2")).code, 0);
  await assert.rejects(run(stack, allowFormatCommand, slot), /Cannot .* volume/);
  await assert.rejects(
    run(stack, allowFormatCommand, `nas3/${slot}`),
    refusal(/nas3\/.* belongs to no router of --config/),
  );
  await assert.rejects(
    run(stack, allowFormatCommand, id, "--backend", "nas1"),
    refusal(/no such router was chosen/),
  );
  await assert.rejects(run(stack, releaseCommand, `nas3/${slot}`), refusal(/to no router/));
});

Deno.test("import makes a disk of the named router a volume, whose handle has the router's prefix", async () => {
  await using stack = await startBackends(two);
  const disk = { slot: "old-data", "file-path": "/storage-pool/old.img", size: String(1n << 30n) };
  for (const simulator of Object.values(stack.simulators)) await control(simulator, "POST /disks", disk);
  const { code, out } = await run(stack, importCommand, "old-data", "--kind", "block", "--backend", "nas2");
  assert.equal(code, 0);
  assert.match(out, /volumeHandle: "nas2\/old-data"/);
  const request = { ...publishRequest("nas2/old-data"), volumeCapability: block };
  const { publishContext } = await stack.clients.controller.call("ControllerPublishVolume", request);
  assert.match(publishContext["nqn"]!, /:nas2:old-data:1-[0-9a-f]{8}$/);
  await assert.rejects(
    stack.clients.controller.call("ControllerPublishVolume", { ...request, volumeId: "old-data" }),
    /\(router nas1\)/,
  );
});

Deno.test("withdraw takes a volume away on the router that its id names, and nothing on any other", async () => {
  await using stack = await startBackends(two);
  const ids = [await create(stack, "pvc-a", "nas1"), await create(stack, "pvc-a", "nas2")];
  for (const id of ids) await stack.clients.controller.call("ControllerPublishVolume", publishRequest(id));
  const exported = async (name: string) => (await routerState(stack.simulators[name]!)).exports.length;
  const { code, out } = await run(stack, withdrawCommand, ids[1]!, "--vouch");
  assert.equal(code, 0);
  assert.match(out, /^The volume nas2\/pvc-.* is exported no more: it was taken from node-1\.$/);
  assert.deepEqual([await exported("nas1"), await exported("nas2")], [1, 0]);
  await assert.rejects(run(stack, withdrawCommand, "nas3/pvc-a", "--vouch"), refusal(/to no router/));
  assert.equal(await exported("nas1"), 1);
});

Deno.test("adopt --from-cluster names the volumes of one router by their handles", async () => {
  await using stack = await startBackends(two);
  const free = await create(stack, "pvc-free", "nas2");
  const held = await create(stack, "pvc-held", "nas2");
  await create(stack, "pvc-elsewhere", "nas1");
  await stack.clients.controller.call("ControllerPublishVolume", publishRequest(held));
  const { out, err } = await run(
    stack,
    adoptCommand,
    "--from-cluster",
    clusterId,
    "--backend",
    "nas2",
    "--json",
    "--vouch",
  );
  const { items } = JSON.parse(out) as { items: { spec: { csi: { volumeHandle: string } } }[] };
  assert.deepEqual(items.map(({ spec }) => spec.csi.volumeHandle), [free]);
  assert.match(err, new RegExp(`Left out: ${held}, which node-1 has\\..*rds-csi withdraw ${held} --vouch$`));
});

Deno.test("doctor --probe needs one router of a file, given by name", async () => {
  await using stack = await startBackends(two);
  await create(stack, "pvc-a", "nas2"); // So far the folder exists only on nas2.
  const slots = await slotsOf(stack.simulators["nas2"]!);
  const probe = (...args: string[]) => run(stack, doctorCommand, "--probe", "--before-reboot", ...args);
  await assert.rejects(probe("--backend", "nas1"), /in that folder because it does not exist/);
  await assert.rejects(probe("--backend", "nas2"), /the export cannot be reached from here/);
  assert.deepEqual(await slotsOf(stack.simulators["nas2"]!), slots);
  const one = /--probe asks one router: choose it with --backend, one of nas1, nas2/;
  await assert.rejects(probe(), refusal(one));
  await assert.rejects(probe("--backend", "nas2", "--after-reboot"), refusal(/before-reboot/));
});
