import assert from "node:assert/strict";
import { dirname } from "node:path";
import { hostOutput } from "../../../tools/host_command.ts";
import { example, exampleFile, type Run, runExample } from "../../deploy/scheduled_snapshots.ts";
import { parseObjects, readDeployFile } from "../../deploy/objects.ts";
import type { Bench, Suite } from "../kit/bench.ts";
import { type Cluster, renderAndApply, type Uninstalled } from "../kit/cluster.ts";
import { accountKubeconfig, pathOf } from "../kit/deployment.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { claimOf, paths, type Snapshot } from "../kit/objects.ts";
import { pause, until } from "../kit/waiting.ts";
import { Workload } from "../kit/workload.ts";

const keep = 2;
const runs = 4;

/** The CronJob's own command under its own account; a process, as no pod reaches the API server here. */
export const suite: Suite = {
  what: "deploy/examples/scheduled-snapshots.yaml, applied, and its command under its account's token",
  limitMinutes: 6,
  run: async (bench) => {
    const schedule = new Schedule(bench);
    const cluster = await bench.cluster({
      fakeNodes: ["n9"],
      install: (location) => schedule.install(location),
    });
    await bench.story([
      [`${exampleFile} is taken, strictly checked`, () => schedule.apply(cluster)],
      [
        `of ${runs} runs the newest ${keep} snapshots stay, on the router too`,
        () => schedule.rotate(cluster),
      ],
      [
        "a run of a class that there is not fails, says why, and deletes nothing",
        () => schedule.fail(cluster),
      ],
      [
        "the account reads no Secret, deletes no claim, and sees no other namespace",
        () => schedule.tryMore(),
      ],
      ["with the claim and its snapshots everything goes", async () => {
        await schedule.end(cluster);
        return await assertNothingLeft(cluster, bench.signal);
      }],
    ]);
  },
};

class Schedule {
  readonly #bench: Bench;
  #location: Uninstalled | undefined;
  #env: Readonly<Record<string, string>> = {};

  constructor(bench: Bench) {
    this.#bench = bench;
  }

  async install(location: Uninstalled) {
    this.#location = location;
    return await renderAndApply(location, {});
  }

  async apply(cluster: Cluster): Promise<string> {
    const objects = parseObjects(readDeployFile(exampleFile));
    for (const object of objects) {
      const query = "fieldManager=kubectl&fieldValidation=Strict";
      await cluster.api.text("PATCH", `${pathOf(object)}?${query}`, object, "application/apply-patch+yaml");
    }
    const { cronJob } = example();
    const account = cronJob.spec.jobTemplate.spec.template.spec.serviceAccountName;
    const config = await accountKubeconfig(cluster.plane, "default", account);
    const kubectl = this.#location!.tools.program("kubectl");
    this.#env = {
      PATH: `${dirname(kubectl)}:/usr/bin:/bin`,
      HOME: this.#location!.folder,
      KUBECONFIG: config,
      KEEP: `${keep}`,
      // What the rig's values call the class.
      CLASS: "rds",
    };
    const work = new Workload(cluster, this.#bench.signal);
    const claim = { mode: "Filesystem", mebibytes: 64, storageClass: "rds-ext4" } as const;
    await work.create(paths.claims, claimOf(example().env["CLAIM"]!, claim));
    await work.bound(example().env["CLAIM"]!);
    return objects.map(({ kind }) => kind).join(", ");
  }

  async rotate(cluster: Cluster): Promise<string> {
    for (let run = 1; run <= runs; run++) {
      const { code, stderr } = await this.#run();
      assert.deepEqual([code, stderr], [0, ""]);
      // The times in the names are of seconds.
      await pause(1_000);
    }
    const left = await until("two snapshots to be left", async () => {
      const names = await snapshotsOf(cluster);
      return names.length === keep && names;
    }, { limitSeconds: 60, signal: this.#bench.signal });
    await until("two snapshots to be left on the router", async () => {
      const { subvolumes } = await cluster.router.control<{ subvolumes: { fullname: string }[] }>("/state");
      return subvolumes.filter(({ fullname }) => fullname.includes("snap-")).length === keep;
    }, { limitSeconds: 60, signal: this.#bench.signal });
    assert(left.every((name) => /^data-nightly-\d{8}-\d{6}$/.test(name)), left.join());
    return left.join(", ");
  }

  async fail(cluster: Cluster): Promise<string> {
    const before = await snapshotsOf(cluster);
    const { code, stderr } = await this.#run({ CLASS: "none", KEEP: "1", WAIT: "4" });
    assert.equal(code, 1);
    assert.match(stderr, /did not get ready in time.*\n.*"none"/s);
    assert.deepEqual((await snapshotsOf(cluster)).slice(0, keep), before);
    return stderr.split("\n").at(-1)!;
  }

  async tryMore(): Promise<string> {
    const kubectl = this.#location!.tools.program("kubectl");
    const wanted = [
      ["get", "secrets"],
      ["delete", "persistentvolumeclaims"],
      ["update", "volumesnapshots.snapshot.storage.k8s.io"],
      ["list", "volumesnapshots.snapshot.storage.k8s.io", "--namespace=kube-system"],
    ];
    const cache = ["--cache-dir", this.#location!.folder, "--kubeconfig", this.#env["KUBECONFIG"]!];
    for (const words of wanted) {
      const { code, stdout } = await new Deno.Command(kubectl, {
        args: [...cache, "auth", "can-i", ...words],
      }).output();
      assert.deepEqual([code, new TextDecoder().decode(stdout).trim()], [1, "no"], words.join(" "));
    }
    await hostOutput(kubectl, [
      ...cache,
      "auth",
      "can-i",
      "delete",
      "volumesnapshots.snapshot.storage.k8s.io",
    ]);
    return wanted.map((words) => words.join(" ")).join(", ");
  }

  async end(cluster: Cluster): Promise<void> {
    const work = new Workload(cluster, this.#bench.signal);
    await work.remove(paths.snapshots, ...await snapshotsOf(cluster));
    await work.gone(paths.snapshotContents);
    await work.remove(paths.claims, example().env["CLAIM"]!);
    await work.gone(paths.volumes);
  }

  async #run(more: Readonly<Record<string, string>> = {}): Promise<Run> {
    return await runExample({ ...this.#env, ...more });
  }
}

/** Names of all snapshots, which begin with the time for each schedule. */
async function snapshotsOf(cluster: Cluster): Promise<readonly string[]> {
  return (await cluster.api.list<Snapshot>(paths.snapshots)).map(({ metadata }) => metadata.name).toSorted();
}
