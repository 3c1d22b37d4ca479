import assert from "node:assert/strict";
import { describeConnectFailure } from "./handshake.ts";

for (
  const [message, form, lasting] of [
    ["connect ECONNREFUSED 10.0.0.1:22", /ALLOW_NET/, false],
    ["getaddrinfo ENOTFOUND router", /resolved/, false],
    ["connect EHOSTUNREACH 10.0.0.1:22", /no route/, false],
    ["connect ETIMEDOUT 10.0.0.1:22", /firewall/, false],
    ["Timed out while waiting for handshake", /firewall/, false],
    ["All configured authentication methods failed", /ssh-keys/, true],
    ["Handshake failed: no matching host key format", /strong-crypto/, true],
    ["Connection lost before handshake", /restarting/, false],
    ['Requires net access to "r:22", run again with the --allow-net flag', /ALLOW_NET of its build$/, true],
    ["something else", /something else/, false],
  ] as const
) {
  Deno.test(`describeConnectFailure() says what to do about ${message}`, () => {
    const error = describeConnectFailure(new Error(message));
    assert.match(error.message, form);
    const saysMore = /something|no matching/.test(message);
    assert.equal(error.message.includes(message), saysMore, "no library's words beside those for people");
    assert.equal(error.lasting, lasting);
  });
}

Deno.test("describeConnectFailure() prefers a host key mismatch to all other causes", () => {
  const error = describeConnectFailure(new Error("Host denied"), "its host key is another");
  assert.equal(error.message, "its host key is another");
  assert.equal(error.lasting, true);
});
