import assert from "node:assert/strict";
import { create, publishRequest } from "../../tests/support/controller_calls.ts";
import { clusterId, type Stack, startStack } from "../../tests/support/stack.ts";
import { FlagError } from "./flags.ts";
import { VolumeError } from "../volume/errors.ts";
import { allowFormatCommand } from "./allow_format.ts";
import { exitCodes } from "./io.ts";

/** Runs the command against a stack's router, and returns its exit code and output. */
async function run(stack: Stack, args: readonly string[]): Promise<{ code: number; out: string }> {
  const passwordFile = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
  const printed: string[] = [];
  const io = {
    out: (line: string) => void printed.push(line),
    err: (line: string) => void printed.push(line),
    env: () => undefined,
    signal: new AbortController().signal,
  };
  try {
    await Deno.writeTextFile(passwordFile, "a test's password\n");
    const code = await allowFormatCommand([
      ...args,
      ...["--rds-address", "127.0.0.1", "--rds-port", String(stack.simulator.sshPort)],
      ...["--rds-password-file", passwordFile, "--rds-host-key", stack.simulator.hostKeyPublic],
      ...["--cluster-id", clusterId],
    ], io);
    return { code, out: printed.join("\n") };
  } finally {
    await Deno.remove(passwordFile);
  }
}

Deno.test("allow-format lets the next epoch of an unpublished volume be formatted, and no published one", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const id = await create(stack, "pvc-blank");
  const publish = async () => {
    const { publishContext } = await controller.call("ControllerPublishVolume", publishRequest(id));
    return publishContext?.["mayFormat"];
  };
  const unpublish = () => controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId: "node-1" });
  assert.equal(await publish(), "true");
  await assert.rejects(run(stack, [id]), (error) => VolumeError.is(error, "precondition"));
  await unpublish();
  assert.equal(await publish(), "false");
  await unpublish();
  const { code, out } = await run(stack, [id]);
  assert.equal(code, exitCodes.ok);
  assert.match(out, new RegExp(`The volume ${id} may be formatted`));
  assert.equal(await publish(), "true");
  assert.deepEqual(await stack.violations(), []);
});

Deno.test("allow-format reports wrong arguments, and sends nothing", async () => {
  await using stack = await startStack();
  const before = await stack.count();
  await assert.rejects(run(stack, []), FlagError);
  await assert.rejects(run(stack, ["not an id"]), (error) => VolumeError.is(error, "invalid"));
  await assert.rejects(run(stack, ["pvc-1", "--what"]), FlagError);
  await assert.rejects(
    run(stack, ["pvc-1", "--router-profile", "/nonexistent/profile.json"]),
    (error) => error instanceof FlagError && /^--router-profile .*no such file/.test(error.message),
  );
  assert.deepEqual(await stack.count(), before);
});
