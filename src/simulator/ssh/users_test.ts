import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { routerHostKey } from "../../../tests/fakes/ssh_keys.ts";
import { parseKey } from "./host_key.ts";
import type { AuthContext } from "./library.ts";
import { authenticate } from "./users.ts";

const key = parseKey(routerHostKey.privatePem)!;
const user = { name: "csi", authorizedKeys: ["", "no key at all", routerHostKey.publicLine] };
const blob = Buffer.from("what the client signs");

function attempt(more: Record<string, unknown>): AuthContext {
  const asked = { algo: "rsa-sha2-256", data: key.getPublicSSH() };
  return { username: "csi", method: "publickey", key: asked, hashAlgo: "sha256", ...more } as AuthContext;
}

Deno.test("authenticate() accepts a signature of the authorized key", () => {
  const signature = key.sign(blob, "sha256");
  assert.equal(authenticate(attempt({ blob, signature }), [user]), user);
});

Deno.test("authenticate() refuses an authorized key without the right signature", () => {
  const signature = key.sign(Buffer.from("something else"), "sha256");
  assert.equal(authenticate(attempt({ blob, signature }), [user]), undefined);
});

Deno.test("authenticate() reports that a key would be accepted", () => {
  assert.equal(authenticate(attempt({}), [user]), user);
  const foreign = { algo: "ssh-ed25519", data: Buffer.from("another key") };
  assert.equal(authenticate(attempt({ key: foreign }), [user]), undefined);
});

Deno.test("authenticate() accepts no other method", () => {
  assert.equal(authenticate(attempt({ method: "keyboard-interactive" }), [user]), undefined);
  assert.equal(authenticate(attempt({ method: "none" }), [user]), undefined);
});
