import assert from "node:assert/strict";
import { UptimeAnchor } from "./uptime_anchor.ts";

Deno.test("UptimeAnchor lets uptime grow with the clock on one connection", () => {
  const anchor = new UptimeAnchor();
  anchor.set(500_000, { connection: 2, receivedMs: 1000 });
  assert.equal(anchor.upMsAt({ connection: 2, receivedMs: 4000 }), 503_000);
  assert.equal(anchor.upMsAt({ connection: 2, receivedMs: 900 }), 500_000);
});

Deno.test("UptimeAnchor knows nothing on another connection, as the router may have rebooted between", () => {
  const anchor = new UptimeAnchor();
  assert.equal(anchor.upMsAt({ connection: 1, receivedMs: 0 }), undefined);
  anchor.set(500_000, { connection: 1, receivedMs: 1000 });
  assert.equal(anchor.upMsAt({ connection: 2, receivedMs: 1001 }), undefined);
});
