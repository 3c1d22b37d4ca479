// The steps of the node: whatever changes anything outside of its process, one after the other. They are counted where they
// leave the process, at the runtime's own functions, so that none can be forgotten.

/** A step that was taken. */
export interface Step {
  /** For people. */
  readonly name: string;
  /** A tool that runs as a child, and for how long it did; undefined for what the process does itself. */
  readonly childMs: number | undefined;
}

/** Which tools change anything, by their arguments. */
const changes: Readonly<Record<string, (args: readonly string[]) => boolean>> = {
  "nvme": always,
  "mount": always,
  "mount.nfs4": always,
  "umount": always,
  "mkfs.ext4": always,
  "mkfs.xfs": (args) => !args.includes("-V"),
  "e2fsck": (args) => !args.includes("-n"),
  "resize2fs": always,
  "xfs_growfs": always,
  "blockdev": always,
  "dmsetup": ([verb = ""]) => !["table", "status", "target-version"].includes(verb),
  "cryptsetup": (args) =>
    !["--version", "luksDump"].includes(args[0] ?? "") && !args.includes("--test-passphrase"),
  "chmod": always,
  "losetup": always,
  "sync": always,
  "dd": (args) => args.some((word) => word.startsWith("of=")),
  // No file system is frozen here.
  "fsfreeze": never,
  "stat": never,
  "realpath": never,
  "blkid": never,
  "xfs_logprint": never,
};

/** Hears of every step of this process. */
export interface StepListener {
  /** Right before a step is taken. */
  before(name: string): void;
  /** Right after a tool has been started; `ended` resolves before whoever started it hears of its end. */
  during?(name: string, ended: Promise<unknown>): void;
}

/** Makes the runtime tell of each step from now on. */
export function listenToSteps(listener: StepListener): void {
  Object.assign(Deno, { ...fileFunctions(listener), Command: commandClass(listener) });
  const { write } = Deno.FsFile.prototype;
  Deno.FsFile.prototype.write = function (bytes) {
    listener.before("write");
    return write.call(this, bytes);
  };
}

/** Those that the node uses; what would change nothing is no step. */
function fileFunctions(listener: StepListener) {
  const before = (name: string) => listener.before(name);
  const { mkdir, remove, rename, chmod, chown, utime, open } = Deno;
  return {
    mkdir: (path: string, options?: Deno.MkdirOptions) => {
      if (!exists(path)) before(`mkdir ${path}`);
      return mkdir(path, options);
    },
    remove: (path: string, options?: Deno.RemoveOptions) => {
      if (exists(path)) before(`remove ${path}`);
      return remove(path, options);
    },
    rename: (from: string, to: string) => {
      before(`rename to ${to}`);
      return rename(from, to);
    },
    chmod: (path: string, mode: number) => {
      before(`chmod ${path}`);
      return chmod(path, mode);
    },
    chown: (path: string, uid: number | null, gid: number | null) => {
      before(`chown ${path}`);
      return chown(path, uid, gid);
    },
    utime: (path: string, accessed: number | Date, modified: number | Date) => {
      before(`utime ${path}`);
      return utime(path, accessed, modified);
    },
    open: (path: string, options?: Deno.OpenOptions) => {
      if (options?.write && !(options.create && exists(path))) before(`create ${path}`);
      return open(path, options);
    },
  };
}

function commandClass(listener: StepListener): typeof Deno.Command {
  return class extends Deno.Command {
    readonly #step: string | undefined;

    constructor(path: string, options: Deno.CommandOptions = {}) {
      super(path, options);
      const tool = path.replace(/.*\//, "");
      const isStep = changes[tool];
      if (isStep === undefined) throw new Error(`Nothing says whether ${tool} changes anything`);
      const args = options.args ?? [];
      this.#step = isStep(args) ? [tool, ...args].join(" ") : undefined;
    }

    override spawn(): Deno.ChildProcess {
      if (this.#step === undefined) return super.spawn();
      listener.before(this.#step);
      const child = super.spawn();
      listener.during?.(this.#step, child.status);
      return child;
    }
  };
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return false;
    throw error;
  }
}

function always(): boolean {
  return true;
}

function never(): boolean {
  return false;
}
