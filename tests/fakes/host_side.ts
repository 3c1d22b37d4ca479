import type { HostLink, HostName, HostSide } from "../../src/doctor/probe/question.ts";
import type { Router } from "../../src/simulator/model/router.ts";
import { VolumeError } from "../../src/volume/errors.ts";

interface Written {
  readonly lba: bigint;
  readonly data: Uint8Array;
}

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
  readonly #written = new Map<string, Written>();
  /** What was written last to any of them: a copy of a disk holds it, once it takes room. */
  #latest: Written | undefined;
  #zeros = new Uint8Array(0);

  constructor(router: Router) {
    this.#router = router;
  }

  connect(nqn: string, host: HostName): Promise<HostLink> {
    // An export that lingers goes on for those who are connected alone.
    const isOn = this.#isServed(nqn) && this.#diskOf(nqn)?.exported === true;
    if (!isOn || !this.#lets(nqn, host)) {
      const error = new VolumeError("unavailable", `Cannot connect because the target refuses: nqn=${nqn}`);
      this.#refusals.add(error);
      return Promise.reject(error);
    }
    const generation = this.#router.exports.generationOf(nqn);
    let isOpen = true;
    // deno-lint-ignore no-explicit-any -- an async function, so that errors are rejections
    const live = async <Result>(read: () => Result): Promise<any> => {
      await Promise.resolve();
      const isSame = this.#router.exports.generationOf(nqn) === generation;
      if (isOpen && isSame && this.#isServed(nqn)) return read();
      const error = new VolumeError("unavailable", `Cannot ask the target: nqn=${nqn}`);
      if (this.#router.behaviours.unexport === "refuses-commands") this.#refusedCommands.add(error);
      throw error;
    };
    return Promise.resolve({
      serial: this.#router.exports.accessOf(nqn)?.identity.serial ?? "",
      blockBytes: () => live(() => 512),
      namespaceBytes: () => live(() => this.#diskOf(nqn)?.attachedBytes ?? 0n),
      namespaceIdentity: () => live(() => ({ uuid: uuidOf(this.#router, nqn), nguid: "" })),
      read: (lba, blocks) => live(() => this.#read(nqn, lba, 512 * blocks)),
      write: (lba, data) => live(() => this.#write(nqn, lba, data)),
      flush: () => live(() => {}),
      [Symbol.asyncDispose]() {
        isOpen = false;
        return Promise.resolve();
      },
    });
  }

  isRefusal(error: unknown): boolean {
    return VolumeError.is(error) && this.#refusals.has(error);
  }

  isRefusedCommand(error: unknown): boolean {
    return VolumeError.is(error) && this.#refusedCommands.has(error);
  }

  /** Of what was written, only the last is kept; what takes room is counted. What is read is not to be changed. */
  #read(nqn: string, lba: bigint, bytes: number): Uint8Array {
    const own = this.#written.get(nqn);
    const isCopy = own === undefined && this.#router.backing.allocatedBytes(this.#pathOf(nqn)) > 0n;
    const written = isCopy ? this.#latest : own;
    if (written?.lba === lba) return written.data.subarray(0, bytes);
    if (this.#zeros.length < bytes) this.#zeros = new Uint8Array(bytes);
    return this.#zeros.subarray(0, bytes);
  }

  #write(nqn: string, lba: bigint, data: Uint8Array): void {
    const path = this.#pathOf(nqn);
    const { backing } = this.#router;
    this.#latest = { lba, data };
    this.#written.set(nqn, this.#latest);
    backing.pretendWritten?.(path, backing.allocatedBytes(path) + BigInt(data.length));
  }

  #isServed(nqn: string): boolean {
    return this.#router.exports.list().includes(nqn);
  }

  #pathOf(nqn: string): string {
    return this.#diskOf(nqn)?.filePath.slice(1) ?? "";
  }

  #diskOf(nqn: string) {
    return this.#router.disks.list().find((disk) => disk.nqn === nqn);
  }

  #lets(nqn: string, host: HostName): boolean {
    const names = this.#diskOf(nqn)?.allowHostName ?? "";
    return names === "" || names.split(",").includes(host.nqn);
  }
}
