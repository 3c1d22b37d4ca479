// A process with one acceptance run on the simulated router of another: volumes are connected through loop devices.
// Usage: _acceptance_child BACKING "KIND …" FLAG…
import { acceptanceCommand } from "../../src/cli/acceptance/acceptance.ts";
import { type LifeKind, lifeKinds } from "../../src/cli/acceptance/names.ts";
import { print } from "../../tools/print.ts";
import { knownProfile } from "./_acceptance_bench.ts";

const [backing = "", kinds = "", ...flags] = Deno.args;
const io = { out: print, err: print, env: () => undefined, signal: new AbortController().signal };
Deno.exit(
  await acceptanceCommand(flags, io, {
    probe: knownProfile,
    connector: { kind: "loop", backing },
    kinds: lifeKinds.filter((kind: LifeKind) => kinds.split(" ").includes(kind)),
    doctor: () => Promise.resolve([]),
  }),
);
