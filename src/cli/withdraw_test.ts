import assert from "node:assert/strict";
import { runCommand } from "../../tests/support/command_run.ts";
import {
  changesNothing,
  create,
  mount,
  publishRequest,
  state,
} from "../../tests/support/controller_calls.ts";
import { type Stack, startStack } from "../../tests/support/stack.ts";
import type { CsiClients } from "../csi/server/client.ts";
import { FlagError } from "./flags.ts";
import { VolumeError } from "../volume/errors.ts";
import { exitCodes } from "./io.ts";
import { withdrawCommand } from "./withdraw.ts";

const withdraw = (stack: Stack, ...args: string[]) => runCommand(stack, withdrawCommand, args);

const publish = ({ controller }: CsiClients, id: string, node: string) =>
  controller.call("ControllerPublishVolume", publishRequest(id, node, mount));

async function volumesOf({ controller }: CsiClients): Promise<readonly string[]> {
  const { entries } = await controller.call("ListVolumes", {});
  return entries.map(({ volume }) => volume?.volumeId ?? "");
}

/** The cluster hash in the names of the files on the router, as a person reads it. */
async function hashOnRouter(stack: Stack): Promise<string> {
  const { files } = await state(stack);
  const [hash] = files.flatMap(({ name }) => /\.([0-9a-f]{8})(?:\.img)?$/.exec(name)?.[1] ?? []);
  assert(hash !== undefined);
  return hash;
}

Deno.test("a new cluster with the lost one's id has its volumes, and gets those that nodes held after withdraw", async () => {
  await using stack = await startStack();
  const [free, held] = [await create(stack, "free"), await create(stack, "held")];
  const before = (await publish(stack.clients, held, "node-1")).publishContext["nqn"];
  const foreign = await stack.another(["--cluster-id", "a new cluster"]);
  assert.deepEqual(await volumesOf(foreign.clients), []);
  const heir = await stack.another(["--cluster-id", `hash:${await hashOnRouter(stack)}`]);
  assert.deepEqual((await volumesOf(heir.clients)).toSorted(), [free, held].toSorted());
  await publish(heir.clients, free, "node-2");
  await assert.rejects(publish(heir.clients, held, "node-2"), /node-1/);
  const { code, out } = await withdraw(stack, held, "--vouch");
  assert.equal(code, exitCodes.ok);
  assert.match(out, /is exported no more: it was taken from node-1/);
  const after = (await publish(heir.clients, held, "node-2")).publishContext["nqn"];
  assert.notEqual(after, before);
});

Deno.test("withdraw of a volume without a holder says so, and changes nothing", async () => {
  await using stack = await startStack();
  const id = await create(stack, "free");
  await changesNothing(stack, async () => {
    assert.match((await withdraw(stack, id, "--vouch")).out, /no node had it/);
  });
});

Deno.test("withdraw refuses without a person's word, and for a missing volume", async () => {
  await using stack = await startStack();
  const id = await create(stack, "held");
  await publish(stack.clients, id, "node-1");
  await changesNothing(stack, async () => {
    await assert.rejects(withdraw(stack, id), (error) => {
      assert(error instanceof FlagError);
      assert.match(error.problems.join(), /vouch/);
      return true;
    });
    await assert.rejects(withdraw(stack), FlagError);
    const none = "pvc-0000000000000000000000000000";
    await assert.rejects(withdraw(stack, none, "--vouch"), (error) => VolumeError.is(error, "not-found"));
  });
});
