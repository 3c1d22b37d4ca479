/**
 * What differs between routers, as far as a decision of the driver depends on it: each property is one such question, its
 * value an answer. `doctor --probe` asks them, and the simulator plays any answer.
 */
export interface RouterBehaviours {
  /** Longest slot name, in characters. */
  readonly maxSlot: number;
  /** Longest comment that survives, in bytes; what is longer is cut off silently. */
  readonly maxComment: number;
  /** Longest subsystem NQN that survives, in bytes; what is longer is cut off silently. */
  readonly maxNqn: number;
  /** Most that one `:put` prints, in bytes; the rest is cut off silently. */
  readonly maxPut: number;
  /** Longest exec request that is taken, in bytes; a longer one is refused. */
  readonly maxCommand: number;
  /** Whether `where x="…"` tells capitals from small letters. */
  readonly textMatch: "exact" | "ignore-case";
  /** When the size of an exported disk follows a resize. */
  readonly grow: "live" | "after-toggle" | "never";
  /**
   * Whether a namespace has the same UUID after its export was toggled, so that hosts come back and go on, or a new one
   * each time, so that they drop it.
   */
  readonly identity: "kept" | "new-per-export";
  /** The same of a boot of the router: what keeps it over a toggle may still make it up anew when it starts. */
  readonly bootIdentity: "kept" | "new";
  /** What becomes of connected hosts when the comment or the allowed hosts of their disk change. */
  readonly liveChange: "harmless" | "ends-sessions";
  /** What becomes of connected hosts when another disk is added, exported, withdrawn or removed. */
  readonly otherDisks: "harmless" | "ends-sessions";
  /**
   * What connected hosts see of a withdrawal: their connections end, or the target stays connected and refuses their commands,
   * at least for a moment. Linux takes such a refusal for the answer to a write, and no layer above tries again.
   */
  readonly withdrawal: "ends-sessions" | "refuses-commands";
  /** How long a withdrawn export goes on serving those who are connected, in milliseconds. */
  readonly unexport: number;
  /** What `nvme-tcp-server-allow-host-name` is: a list of host NQNs with commas, a single one, or without effect. */
  readonly allowHost: "list" | "single" | "ignored";
  /**
   * What becomes of the room of blocks that a host discards: the pool gets it back, the file keeps it, or the target takes no
   * discards at all.
   */
  readonly discard: "frees" | "keeps" | "unsupported";
  /** How much later than the router itself its file disks are back after a boot, in milliseconds. */
  readonly disksLate: number;
  /** Whether free space falls by what is written, or by the full size at once. */
  readonly allocation: "sparse" | "full";
  /** Whether `/disk add` takes over a file that is there already. */
  readonly adopt: "kept" | "refused";
  /** Whether `/file copy` shares its blocks with the original. */
  readonly copy: "reflink" | "full";
  /** Whether `/file copy` answers when the copy is whole, or at once. */
  readonly copyReturns: "when-done" | "at-once";
  /** Where a Btrfs subvolume may be made: at any path of its file system, or at its top only. */
  readonly subvolumeNames: "nested" | "flat";
  /** Whether a subvolume can be removed while there are snapshots of it. */
  readonly subvolumeParent: "free" | "held";
}

/** A router that does what is known, and where nothing is known what asks most of its client, short of malice. */
export const defaultRouterBehaviours: RouterBehaviours = {
  maxSlot: Infinity,
  maxComment: 255,
  maxNqn: 223,
  maxPut: Infinity,
  maxCommand: Infinity,
  textMatch: "exact",
  // Upstream's target of Linux 5.6, which is what a router shows: it looks at a file's size when it opens it.
  grow: "after-toggle",
  identity: "new-per-export",
  bootIdentity: "new",
  liveChange: "harmless",
  otherDisks: "harmless",
  withdrawal: "ends-sessions",
  unexport: 0,
  allowHost: "list",
  // The same target over a loop device, which makes holes in its file.
  discard: "frees",
  disksLate: 0,
  allocation: "sparse",
  adopt: "kept",
  copy: "reflink",
  copyReturns: "when-done",
  subvolumeNames: "nested",
  subvolumeParent: "free",
};

/** Reads one value from text; undefined is no value of that kind. */
export type Reader<T> = (text: string) => T | undefined;

/** How each setting of a kind is read. */
export type Readers<Settings> = { readonly [Name in keyof Settings]: Reader<Settings[Name]> };

/** How answers are read: words may be joined by blanks instead of hyphens; `unexport` is `kills` or `lingers <ms>`. */
export const answerReaders: Readers<RouterBehaviours> = {
  maxSlot: limit,
  maxComment: limit,
  maxNqn: limit,
  maxPut: limit,
  maxCommand: limit,
  textMatch: oneOf("exact", "ignore-case"),
  grow: oneOf("live", "after-toggle", "never"),
  identity: oneOf("kept", "new-per-export"),
  bootIdentity: oneOf("kept", "new"),
  liveChange: oneOf("harmless", "ends-sessions"),
  otherDisks: oneOf("harmless", "ends-sessions"),
  withdrawal: oneOf("ends-sessions", "refuses-commands"),
  unexport: lingering,
  allowHost: oneOf("list", "single", "ignored"),
  discard: oneOf("frees", "keeps", "unsupported"),
  disksLate: limit,
  allocation: oneOf("sparse", "full"),
  adopt: oneOf("kept", "refused"),
  copy: oneOf("reflink", "full"),
  copyReturns: oneOf("when-done", "at-once"),
  subvolumeNames: oneOf("nested", "flat"),
  subvolumeParent: oneOf("free", "held"),
};

/**
 * Reads settings as they come from a command line or as JSON; a limit is a number or `unlimited`.
 *
 * @throws {RangeError} when a name or a value is none
 */
export function parseSettings<Settings>(
  readers: Readers<Settings>,
  settings: Readonly<Record<string, unknown>>,
): Partial<Settings> {
  const names = Object.keys(readers);
  return Object.assign(
    {},
    ...Object.entries(settings).map(([name, value]) => {
      if (!names.includes(name)) {
        throw new RangeError(`There is no question ${name}; there are ${names.join(", ")}.`);
      }
      const read = readers[name as keyof Settings](String(value).trim().replaceAll(" ", "-"));
      if (read !== undefined) return { [name]: read };
      throw new RangeError(`${JSON.stringify(value)} is no answer to the question ${name}.`);
    }),
  );
}

/** Writes answers so that {@linkcode parseSettings} reads them, also after JSON has dropped what it cannot write. */
export function printableBehaviours(answers: object): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(answers).map(([name, value]) => [name, value === Infinity ? "unlimited" : value]),
  );
}

/** Reads one of a few words. */
export function oneOf<Word extends string>(...words: readonly Word[]): Reader<Word> {
  return (text) => words.find((word) => word === text);
}

/** Reads a truth value. */
export function yesNo(text: string): boolean | undefined {
  if (text === "yes" || text === "true") return true;
  if (text === "no" || text === "false") return false;
  return undefined;
}

/** Reads a number, or `unlimited`. */
export function limit(text: string): number | undefined {
  if (text === "unlimited" || text === "Infinity") return Infinity;
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : undefined;
}

function lingering(text: string): number | undefined {
  if (text === "kills") return 0;
  const match = /^(?:lingers-)?([0-9]{1,9})$/.exec(text);
  return match === null ? undefined : Number(match[1]);
}
