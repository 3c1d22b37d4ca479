/**
 * Differences between routers on which a decision of the driver depends: each property is one question, its value an
 * answer. `doctor --probe` finds the answers, and the simulator can play any of them.
 */
export interface RouterBehaviours {
  /** Longest slot name, in characters. */
  readonly maxSlot: number;
  /** Longest comment that the router keeps, in bytes; it cuts off a longer one silently. */
  readonly maxComment: number;
  /** Longest subsystem NQN that the router keeps, in bytes; it cuts off a longer one silently. */
  readonly maxNqn: number;
  /** The most that one `:put` prints, in bytes; the rest is cut off silently. */
  readonly maxPut: number;
  /** Longest exec request that the router accepts, in bytes; it refuses a longer one. */
  readonly maxCommand: number;
  /** Whether `where x="…"` distinguishes upper and lower case. */
  readonly textMatch: "exact" | "ignore-case";
  /** When the size of an exported disk follows a resize. */
  readonly grow: "live" | "after-toggle" | "never";
  /**
   * Whether a namespace keeps its UUID over a boot of the router, so that hosts come back and go on, or gets a new one, so that
   * hosts drop it.
   */
  readonly bootIdentity: "kept" | "new";
  /** What happens to connected hosts when the comment or the allowed hosts of their disk change. */
  readonly liveChange: "harmless" | "ends-sessions";
  /** What happens to connected hosts when another disk is added, exported, withdrawn or removed. */
  readonly otherDisks: "harmless" | "ends-sessions";
  /**
   * What connected hosts see of a withdrawal: their connections end, or the target stays connected and refuses their
   * commands, at least for a moment. Linux takes such a refusal as the final answer to a write, and no layer above
   * tries again.
   */
  readonly withdrawal: "ends-sessions" | "refuses-commands";
  /** How long a withdrawn export goes on serving connected hosts, in milliseconds. */
  readonly unexport: number;
  /**
   * What becomes of the room of blocks that a host discards: the pool gets it back, the file keeps it, or the target takes no
   * discards at all.
   */
  readonly discard: "frees" | "keeps" | "unsupported";
  /** How much later than the router itself its file disks are back after a boot, in milliseconds. */
  readonly disksLate: number;
  /** Whether free space falls by the written data, or by the full size at once. */
  readonly allocation: "sparse" | "full";
  /** Whether `/disk add` accepts an existing file and keeps its data. */
  readonly adopt: "kept" | "refused";
  /** Whether `/file copy` shares its blocks with the original. */
  readonly copy: "reflink" | "full";
  /** Whether `/file copy` answers when the copy is complete, or at once. */
  readonly copyReturns: "when-done" | "at-once";
  /** Where a Btrfs subvolume may be made: at any path of its file system, or only at its top. */
  readonly subvolumeNames: "nested" | "flat";
  /** Whether a subvolume can be removed while there are snapshots of it. */
  readonly subvolumeParent: "free" | "held";
}

/** The default router: it does what is known, and otherwise what is hardest for its client. */
export const defaultRouterBehaviours: RouterBehaviours = {
  maxSlot: Infinity,
  maxComment: 255,
  maxNqn: 223,
  maxPut: Infinity,
  maxCommand: Infinity,
  textMatch: "exact",
  // Like the target of upstream Linux since 5.6, which routers show: it reads a file's size when it opens it.
  grow: "after-toggle",
  bootIdentity: "new",
  liveChange: "harmless",
  otherDisks: "harmless",
  withdrawal: "ends-sessions",
  unexport: 0,
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

/** Parses one value; undefined for an invalid one. */
export type Reader<T> = (text: string) => T | undefined;

/** The readers of all settings of a kind. */
export type Readers<Settings> = { readonly [Name in keyof Settings]: Reader<Settings[Name]> };

/** The readers of answers. Blanks may replace hyphens; `unexport` is `kills` or `lingers <ms>`. */
export const answerReaders: Readers<RouterBehaviours> = {
  maxSlot: limit,
  maxComment: limit,
  maxNqn: limit,
  maxPut: limit,
  maxCommand: limit,
  textMatch: oneOf("exact", "ignore-case"),
  grow: oneOf("live", "after-toggle", "never"),
  bootIdentity: oneOf("kept", "new"),
  liveChange: oneOf("harmless", "ends-sessions"),
  otherDisks: oneOf("harmless", "ends-sessions"),
  withdrawal: oneOf("ends-sessions", "refuses-commands"),
  unexport: lingering,
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
 * Parses settings from a command line or JSON; a limit is a number or `unlimited`.
 *
 * @throws {RangeError} when a name is unknown or a value invalid
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

/**
 * Converts answers so that {@linkcode parseSettings} can read them, also after JSON, which cannot represent Infinity.
 */
export function printableBehaviours(answers: object): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(answers).map(([name, value]) => [name, value === Infinity ? "unlimited" : value]),
  );
}

/** Makes a reader of one of a few words. */
export function oneOf<Word extends string>(...words: readonly Word[]): Reader<Word> {
  return (text) => words.find((word) => word === text);
}

/** Parses a boolean. */
export function yesNo(text: string): boolean | undefined {
  if (text === "yes" || text === "true") return true;
  if (text === "no" || text === "false") return false;
  return undefined;
}

/** Parses a number, or `unlimited`. */
export function limit(text: string): number | undefined {
  if (text === "unlimited" || text === "Infinity") return Infinity;
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : undefined;
}

function lingering(text: string): number | undefined {
  if (text === "kills") return 0;
  const match = /^(?:lingers-)?([0-9]{1,9})$/.exec(text);
  return match === null ? undefined : Number(match[1]);
}
