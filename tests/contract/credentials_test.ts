// Keys, passwords and host keys that are replaced while the controller runs, against the simulator's SSH server.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import { rejectsWith } from "../support/controller_calls.ts";
import { routerPassword, type Stack, startStack } from "../support/stack.ts";
import { makeSshKeys } from "../fakes/ssh_keys.ts";

/** Cuts the connection at the next command, before the command has an effect. */
async function dropConnection(stack: Stack): Promise<void> {
  await control(stack.simulator, "POST /faults", { action: "drop-before", times: 1 });
}

function list({ clients }: Stack): Promise<unknown> {
  return clients.controller.call("ListVolumes", {});
}

/** Repeats a call until the breaker allows another attempt. */
async function listSoon(stack: Stack): Promise<void> {
  for (const end = performance.now() + 20_000;;) {
    try {
      await list(stack);
      return;
    } catch (error) {
      if (performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

Deno.test("another password is used for the next connection, without a restart; the open one goes on", async () => {
  await using stack = await startStack();
  await list(stack);
  await control(stack.simulator, "PATCH /users/rds-csi", { password: "another" });
  await list(stack);
  await dropConnection(stack);
  await rejectsWith(status.UNAVAILABLE, list(stack), /refused the login/);
  await Deno.writeTextFile(stack.passwordFile, "another\n");
  await listSoon(stack);
  assert.ok(!stack.log.some((line) => line.includes(routerPassword) || line.includes('"another"')));
});

Deno.test("a key that is exchanged on the router and in its file is used without a restart", async () => {
  const [first, second] = [makeSshKeys(), makeSshKeys()];
  const keyFile = await Deno.makeTempFile({ prefix: "rds-csi-key-" });
  try {
    await Deno.writeTextFile(keyFile, first.private);
    await using stack = await startStack({
      simulator: { users: [{ name: "rds-csi", authorizedKeys: [first.public] }] },
      flags: ["--rds-key", keyFile, "--rds-password-file="],
    });
    await list(stack);
    await control(stack.simulator, "PATCH /users/rds-csi", { authorizedKey: second.public });
    await Deno.writeTextFile(keyFile, second.private);
    await dropConnection(stack);
    await listSoon(stack);
  } finally {
    await Deno.remove(keyFile);
  }
});

for (const [what, text] of [["empty", "\n"], ["gone", undefined]] as const) {
  Deno.test(`a password file that is ${what} is reported by its name, and the last password is not used`, async () => {
    await using stack = await startStack();
    await list(stack);
    if (text === undefined) await Deno.rename(stack.passwordFile, `${stack.passwordFile}.away`);
    else await Deno.writeTextFile(stack.passwordFile, text);
    await list(stack);
    await dropConnection(stack);
    await rejectsWith(
      status.UNAVAILABLE,
      list(stack),
      new RegExp(`credentials cannot be used: .*${stack.passwordFile}`),
    );
    assert.ok(stack.log.some((line) => line.includes("backing-off") && line.includes(stack.passwordFile)));
    await Deno.writeTextFile(stack.passwordFile, routerPassword);
    await listSoon(stack);
  });
}

Deno.test("a host key that is exchanged on the router and in its file is believed without a restart", async () => {
  const hostKeys = await Deno.makeTempFile({ prefix: "rds-csi-host-key-" });
  try {
    const known = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
    await Deno.writeTextFile(hostKeys, known);
    await using stack = await startStack({ flags: ["--rds-host-key", hostKeys] });
    await list(stack);
    const { hostKey } = await control(stack.simulator, "POST /host-key", {}) as { hostKey: string };
    await dropConnection(stack);
    await rejectsWith(status.UNAVAILABLE, list(stack), /host key is not the pinned one/);
    await Deno.writeTextFile(hostKeys, hostKey);
    await listSoon(stack);
  } finally {
    await Deno.remove(hostKeys);
  }
});
