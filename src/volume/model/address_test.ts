import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { maxNvmeAddresses, parseNvmeAddresses } from "./address.ts";

const eight = Array.from({ length: maxNvmeAddresses }, (_, i) => `10.0.0.${i + 1}`);

Deno.test("parseNvmeAddresses() reads IP addresses and names, up to eight of them", () => {
  for (
    const text of [
      ...["10.0.0.1", "::1", "fd00::", "::ffff:10.0.0.1", "router.example.com", "nas-2", "r10", "10.example"],
      ...["10.0.0.1,fd00::2,b", eight.join()],
    ]
  ) {
    assert.deepEqual(parseNvmeAddresses("k", text), text.split(","));
  }
});

Deno.test("parseNvmeAddresses() throws invalid for everything else", () => {
  const lists = ["", ",", "a,", ",a", "a,,b", "a, b", "a,a", "a,A", "fd00::1,FD00:0::1", `${eight.join()},b`];
  const names = ["-a", "a-", ".", "a b", "a;b", "a/b", "a\n", "[::1]", "$(x)", 'a"', "x".repeat(256)];
  const numbers = [
    "10.0.0.1:4420",
    "10.0.0.300",
    "10.0.0",
    "10",
    "1.2.3.4.5",
    "fd00::1::2",
    "nas:4420",
    "fe80::1%eth0",
  ];
  for (const text of [...lists, ...names, ...numbers]) {
    const named = refusal("invalid", /: nvmeAddress="/);
    assert.throws(() => parseNvmeAddresses("nvmeAddress", text), named, JSON.stringify(text));
  }
});
