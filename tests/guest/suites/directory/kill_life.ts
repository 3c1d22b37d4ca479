import assert from "node:assert/strict";
import { VolumeError } from "../../../../src/volume/errors.ts";
import { describeKill, type Kill, shape } from "../kill/kills.ts";
import type { Step } from "../kill/steps.ts";
import type { Victims } from "../kill/victims.ts";
import { sh } from "../kill/volume.ts";
import { type DirectoryCall, restartAndCall } from "./kill_node.ts";

/** Calls in which the node may be killed, in their order: two directories of one share come to targets and leave them. */
export const operations = [
  "publish, the first of a share",
  "publish, another one, read-only",
  "publish, another target",
  "unpublish, others are left",
  "unpublish, read-only",
  "unpublish, the last of a share",
] as const;
/** One of {@linkcode operations}. */
export type Operation = typeof operations[number];

/** Where everything of a life lies. */
export interface Place {
  /** The folder of the server, as it sees it itself. */
  readonly served: string;
  /** The same as clients see it. */
  readonly exported: string;
  readonly address: string;
  readonly state: string;
  readonly kubelet: string;
}

/** Longest until a call goes through that is made again and again, in milliseconds. */
const convergenceMs = 90_000;
const pauseMs = 200;
/** What an orchestrator comes back from by itself; anything else is for people. */
const passing = ["busy", "unavailable", "in-use", "deadline"];
/** Whether it was killed in the midst of a tool that goes on without it. */
const outlives = (kill: Kill<Operation> | undefined) => kill?.boundary.moment === "child outlives";

type Maker = (operation: Operation, call: DirectoryCall, giveUp?: DirectoryCall) => Promise<void>;

/** The life of two directories of a share on a node whose process is killed on the way. */
export class DirectoryLife {
  readonly #location: Place;
  readonly #names: { readonly first: string; readonly second: string };
  /** Mount points, with what is to be mounted there. */
  readonly #wanted = new Map<string, string>();

  constructor(location: Place, name: string) {
    this.#location = location;
    this.#names = { first: `${name}-first`, second: `${name}-second` };
  }

  /** A life in which nobody is killed; returns the steps of its calls. */
  async count(victims: Victims<DirectoryCall>): Promise<ReadonlyMap<Operation, readonly Step[]>> {
    const steps = new Map<Operation, readonly Step[]>();
    await this.#live(async (operation, call) => void steps.set(operation, await victims.count(call)));
    return steps;
  }

  /** A life with these kills, one a call at most. */
  async withKills(victims: Victims<DirectoryCall>, kills: readonly Kill<Operation>[]): Promise<void> {
    const of = new Map(kills.map((kill) => [kill.operation, kill]));
    await this.#live(async (operation, call, giveUp) => {
      const kill = of.get(operation);
      try {
        if (kill === undefined) await this.#converge(call);
        else await this.#killed(victims, kill, call, giveUp);
      } catch (error) {
        const when = kill === undefined ? `${operation}; nobody is killed` : describeKill(kill);
        const mounts = await sh("grep ' nfs4 ' /proc/self/mountinfo; :");
        throw new Error(`${when}\n${mounts}\n${Deno.inspect(error)}`, { cause: error });
      }
    });
  }

  async #live(make: Maker): Promise<void> {
    const { first, second } = this.#names;
    const [atFirst, atSecond, again] = [
      this.#target(first),
      this.#target(second),
      this.#target(`${first}-again`),
    ];
    await sh(`cd '${this.#location.served}' && mkdir '${first}' '${second}'`);
    await make(
      "publish, the first of a share",
      this.#publish(first, atFirst),
      this.#unpublish(first, atFirst),
    );
    await this.#assertOwner(first);
    await sh(`echo written > '${atFirst}/file'`);
    const readOnly = this.#publish(second, atSecond, true);
    await make("publish, another one, read-only", readOnly, this.#unpublish(second, atSecond));
    await this.#assertOwner(second);
    await sh(`! touch '${atSecond}/file' 2> /dev/null`);
    await make("publish, another target", this.#publish(first, again), this.#unpublish(first, again));
    await make("unpublish, others are left", this.#unpublish(first, atFirst));
    await sh(`grep -q written '${again}/file'`);
    await make("unpublish, read-only", this.#unpublish(second, atSecond));
    await make("unpublish, the last of a share", this.#unpublish(first, again));
    const { kubelet, state, served } = this.#location;
    assert.equal(await sh(`ls '${kubelet}/pods' '${state}/mounts'`), `${kubelet}/pods:\n\n${state}/mounts:`);
    assert.equal(await sh(`cat '${served}/${first}/file'`), "written");
    await sh(`rm -r '${served}/${first}' '${served}/${second}'`);
  }

  async #killed(
    victims: Victims<DirectoryCall>,
    kill: Kill<Operation>,
    call: DirectoryCall,
    giveUp?: DirectoryCall,
  ): Promise<void> {
    const { boundary, steps } = kill;
    const begun = await victims.kill(call, boundary, steps[boundary.step - 1]?.childMs);
    const expected = steps.slice(0, boundary.step).map(({ name }) => shape(name));
    assert.deepEqual(begun.map(shape).slice(0, steps.length), expected, "its steps were others than counted");
    if (kill.then === "give up" && giveUp !== undefined) await this.#converge(giveUp, kill);
    await this.#converge(call, kill);
  }

  /** Makes a call again and again, each time by a fresh node, and looks at what is mounted then. */
  async #converge(call: DirectoryCall, kill?: Kill<Operation>): Promise<void> {
    const { state } = this.#location;
    const started = performance.now();
    for (;;) {
      try {
        await restartAndCall(state, call);
        break;
      } catch (error) {
        const passes = error instanceof VolumeError && passing.includes(error.kind);
        if (!passes || performance.now() - started > convergenceMs) throw error;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
    this.#expect(call);
    // A tool that outlives its process may end last. What it leaves is for the next start.
    if (outlives(kill)) {
      await sh("while pgrep -x 'mount|umount|mount.nfs4' > /dev/null; do sleep 0.1; done");
      await restartAndCall(state);
    }
    await this.#assertMounts();
  }

  #expect({ method, request }: DirectoryCall): void {
    if (method === "publish") this.#wanted.set(request.targetPath, request.volumeContext["path"]!);
    else this.#wanted.delete(request.path);
  }

  /** Throws unless the binds are mounted that there are to be, and the share if there is one, and nothing else. */
  async #assertMounts(): Promise<void> {
    const { address, exported, state } = this.#location;
    const text = await sh(
      `sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \\([^ ]*\\) .* - nfs4 \\([^ ]*\\) .*/\\1 \\2/p' /proc/self/mountinfo`,
    );
    const keys = await sh(`ls '${state}/mounts'`);
    const share = this.#wanted.size === 0 ? [] : [`${state}/mounts/${keys} ${address}:${exported}`];
    const binds = [...this.#wanted].map(([path, source]) => `${path} ${address}:${source}`);
    assert.deepEqual(
      text.split("\n").filter((line) => line !== "").toSorted(),
      [...share, ...binds].toSorted(),
    );
  }

  /** A directory gets the owner of its StorageClass, also when the node was killed in the midst of it. */
  async #assertOwner(name: string): Promise<void> {
    assert.equal(await sh(`stat -c '%a %u %g' '${this.#location.served}/${name}'`), "2770 1001 1002");
  }

  #target(name: string): string {
    return `${this.#location.kubelet}/pods/${name}`;
  }

  #publish(name: string, targetPath: string, readOnly = false): DirectoryCall {
    const { address, exported } = this.#location;
    const owner = { directoryMode: "2770", uid: "1001", gid: "1002" };
    const volumeContext = { addresses: address, export: exported, path: `${exported}/${name}`, ...owner };
    const mode = "multi-node-multi-writer" as const;
    return {
      method: "publish",
      request: { volumeId: name, targetPath, mode, mountFlags: [], readOnly, volumeContext },
    };
  }

  #unpublish(name: string, path: string): DirectoryCall {
    return { method: "unpublish", request: { volumeId: name, path } };
  }
}
