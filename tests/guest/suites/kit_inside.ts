import assert from "node:assert/strict";
import { insideTest } from "../kit/inside.ts";

/** Runs a program of the guest and answers what it printed. */
async function output(program: string, ...args: string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program, { args, stdin: "null" }).output();
  const decoder = new TextDecoder();
  assert.ok(success, decoder.decode(stderr));
  return decoder.decode(stdout).trim();
}

await insideTest("tests run in the guest, with the arguments that they are given", async () => {
  assert.deepEqual(Deno.args, ["an argument"]);
  return `${Deno.version.deno} on Linux ${await output("uname", "-r")}`;
});

await insideTest("the guest has device mapper's failing targets", async () => {
  await output("modprobe", "-a", "dm-flakey", "dm-delay");
  const targets = await output("dmsetup", "targets");
  for (const name of ["error", "flakey", "delay", "linear"]) {
    assert.match(targets, new RegExp(`^${name} `, "m"));
  }
  return targets.replaceAll(/ +v/g, " ").replaceAll("\n", ", ");
});

await insideTest("the guest has the kernel's NVMe/TCP target and initiator", async () => {
  assert.ok((await Deno.stat("/sys/kernel/config/nvmet")).isDirectory);
  assert.ok(Deno.statSync("/dev/nvme-fabrics").isCharDevice);
  return await output("nvme", "version");
});
