import type { HostLink, HostName, HostSide } from "../../src/doctor/probe/question.ts";
import type { Router } from "../../src/simulator/model/router.ts";
import { VolumeError } from "../../src/volume/errors.ts";

function uuidOf(router: Router, nqn: string): string {
  return router.exports.accessOf(nqn)?.identity.uuid.replaceAll("-", "") ?? "";
}

/** A host that reads from a simulator's model what a real one would see on the wire. */
export class FakeHostSide implements HostSide {
  readonly port = 4420;
  readonly #router: Router;
  readonly #refusals = new WeakSet<VolumeError>();
  readonly #refusedCommands = new WeakSet<VolumeError>();
  /** What was written last, and where, by NQN. */
  readonly #written = new Map<string, { readonly lba: bigint; readonly data: Uint8Array }>();

  constructor(router: Router) {
    this.#router = router;
  }

  connect(nqn: string, host: HostName): Promise<HostLink> {
    if (!this.#isServed(nqn) || !this.#lets(nqn, host)) {
      const error = new VolumeError("unavailable", `Cannot connect because the target refuses: nqn=${nqn}`);
      this.#refusals.add(error);
      return Promise.reject(error);
    }
    const generation = this.#router.exports.generationOf(nqn);
    // deno-lint-ignore no-explicit-any -- an async function, so that errors are rejections
    const live = async <Result>(read: () => Result): Promise<any> => {
      await Promise.resolve();
      if (this.#router.exports.generationOf(nqn) === generation && this.#isServed(nqn)) return read();
      const error = new VolumeError("unavailable", `Cannot ask the target: nqn=${nqn}`);
      if (this.#router.behaviours.withdrawal === "refuses-commands") this.#refusedCommands.add(error);
      throw error;
    };
    return Promise.resolve({
      ended: new Promise(() => {}),
      serial: this.#router.exports.accessOf(nqn)?.identity.serial ?? "",
      namespaceBytes: () => live(() => this.#diskOf(nqn)?.attachedBytes ?? 0n),
      namespaceIdentity: () => live(() => ({ uuid: uuidOf(this.#router, nqn), nguid: "" })),
      takesDiscards: this.#router.behaviours.discard !== "unsupported",
      read: (lba, blocks) => live(() => this.#read(nqn, lba, 512 * blocks)),
      write: (lba, data) => live(() => this.#write(nqn, lba, data)),
      flush: () => live(() => {}),
      discard: () => live(() => this.#discard(nqn)),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    });
  }

  isRefusal(error: unknown): boolean {
    return VolumeError.is(error) && this.#refusals.has(error);
  }

  isRefusedCommand(error: unknown): boolean {
    return VolumeError.is(error) && this.#refusedCommands.has(error);
  }

  /** Of what was written, only the last is kept; what takes room is counted. */
  #read(nqn: string, lba: bigint, bytes: number): Uint8Array {
    const written = this.#written.get(nqn);
    return written?.lba === lba ? written.data.slice(0, bytes) : new Uint8Array(bytes);
  }

  #write(nqn: string, lba: bigint, data: Uint8Array): void {
    const path = this.#diskOf(nqn)!.filePath.slice(1);
    const { backing } = this.#router;
    this.#written.set(nqn, { lba, data: data.slice() });
    backing.pretendWritten?.(path, backing.allocatedBytes(path) + BigInt(data.length));
  }

  #discard(nqn: string): void {
    if (this.#router.behaviours.discard !== "frees") return;
    this.#router.backing.pretendWritten?.(this.#diskOf(nqn)!.filePath.slice(1), 0n);
  }

  #isServed(nqn: string): boolean {
    return this.#router.exports.list().includes(nqn);
  }

  #diskOf(nqn: string) {
    return this.#router.disks.list().find((disk) => disk.nqn === nqn);
  }

  #lets(nqn: string, host: HostName): boolean {
    const names = this.#diskOf(nqn)?.allowHostName ?? "";
    switch (this.#router.behaviours.allowHost) {
      case "ignored":
        return true;
      case "single":
        return names === "" || names === host.nqn;
      case "list":
        return names === "" || names.split(",").includes(host.nqn);
    }
  }
}
