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
      read: (_lba, blocks) => live(() => new Uint8Array(512 * blocks)),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    });
  }

  isRefusal(error: unknown): boolean {
    return VolumeError.is(error) && this.#refusals.has(error);
  }

  isRefusedCommand(error: unknown): boolean {
    return VolumeError.is(error) && this.#refusedCommands.has(error);
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
