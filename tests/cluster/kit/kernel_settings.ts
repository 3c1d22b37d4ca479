/** What a kubelet sets for the whole machine. */
const names = [
  "vm/overcommit_memory",
  "vm/panic_on_oom",
  "kernel/panic",
  "kernel/panic_on_oops",
  "kernel/keys/root_maxkeys",
  "kernel/keys/root_maxbytes",
];

/** The machine's settings as they are now, to be put back when its last kubelet has ended. */
export class KernelSettings {
  readonly #values: ReadonlyMap<string, string>;

  constructor() {
    this.#values = new Map(names.map((name) => [name, Deno.readTextFileSync(`/proc/sys/${name}`)]));
  }

  /** Puts back what has become another value. */
  restore(): void {
    for (const [name, value] of this.#values) {
      const path = `/proc/sys/${name}`;
      if (Deno.readTextFileSync(path) !== value) Deno.writeTextFileSync(path, value);
    }
  }
}
