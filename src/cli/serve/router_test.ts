import assert from "node:assert/strict";
import type { RouterConfig } from "../config/router_settings.ts";
import { VolumeError } from "../../volume/errors.ts";
import { openTransport, readHostKeys } from "./router.ts";

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
const other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB8eHRwbGhkYFxYVFBMSERAPDg0MCwoJCAcGBQQDAgEA";

function configOf(...hostKeys: string[]): RouterConfig {
  return {
    address: "10.0.0.1",
    port: 22,
    user: "rds-csi",
    keyFile: "/key",
    passwordFile: undefined,
    hostKeys,
    insecureSkipVerify: false,
  };
}

const readers = {
  readText: (path: string) =>
    path === "/etc/rds-csi/rds-host-key"
      ? Promise.resolve(`# of the router\n${other}\n`)
      : Promise.reject(new Error("no such file")),
};

Deno.test("readHostKeys() accepts keys themselves and in files", async () => {
  const keys = await readHostKeys(configOf(key, "/etc/rds-csi/rds-host-key"), readers);
  const blobs = keys.map(({ blob }) => blob.toBase64());
  assert.deepEqual(blobs, [key.split(" ")[1], other.split(" ")[1]]);
});

Deno.test("readHostKeys() names the flag and the file that cannot be read", async () => {
  await assert.rejects(readHostKeys(configOf("/missing"), readers), (error) => {
    assert.ok(VolumeError.is(error, "invalid"));
    assert.match(error.message, /--rds-host-key: file=\/missing: no such file/);
    return true;
  });
});

Deno.test("openTransport() shows the path of a secret's file only if it cannot be the secret", async () => {
  const cannot = { readText: (path: string) => Promise.reject(new Error(`no file '${path}'`)), warning() {} };
  const reported = (keyFile: string) =>
    openTransport({ ...configOf(key), keyFile }, cannot).then(
      () => assert.fail("it was read"),
      (error) => error,
    );
  for (const path of ["/etc/key", "./key", "../key"]) {
    assert.ok((await reported(path)).message.includes(path), path);
  }
  const hidden = await reported("pass/word");
  assert.ok(!`${hidden.message} ${hidden.cause}`.includes("pass"), hidden.message);
});
