import { hidden, type Names, publicWords, standIn } from "./allowed.ts";

/** What may follow an id in a name that the driver or a probe gives: a hash, an epoch, a suffix. */
const tail = /^[a-z0-9.:-]{0,1100}$/;
const probeTag = /^rds-csi-probe-[0-9a-f]{8}/;
/** The constant beginnings by which the driver and the probe look for their objects, and a file in a subvolume. */
const constantNames: readonly string[] = ["", "snap-", "rds-csi-probe-", "disk.img", "lost+found"];
const probeNqnPrefix = "nqn.2000-02.com.mikrotik";
const recordForm = /^\{rds1(?: [a-z]=[0-9A-Za-z@/,.-]*)+\}$/;
const recordToken = /^[0-9a-z]{0,12}$/;

/** Decides which texts are a run's own, and replaces its owner's names in them. */
export class OwnText {
  readonly #names: Names;
  /** The base path below the mount point, as subvolumes are named. */
  readonly #inside: string;

  constructor(names: Names) {
    this.#names = names;
    this.#inside = names.basePath.slice(names.mountPoint.length + 2);
  }

  /** A value of a property, with the owner's names replaced; `hidden` when it is not the run's own. */
  show(property: string, value: string): string {
    const { slot, mountPoint, label } = this.#names;
    if (value === "") return "";
    if ((property === "fs" || property === "fs-label") && value === label) return standIn.label;
    if (property === "slot" && value === slot) return standIn.mountPoint;
    if (property === "mount-point" && value.replace(/^\//, "") === mountPoint) {
      return value.startsWith("/") ? `/${standIn.mountPoint}` : standIn.mountPoint;
    }
    if (property === "comment" && this.#isRecord(value)) return value;
    if (this.isName(value) || this.#isNqn(value)) return value;
    return this.#path(value) ?? hidden;
  }

  /** A regular expression that the driver or the probe sends, likewise. */
  showPattern(property: string, pattern: string): string {
    const anchor = pattern.startsWith("(^|/)") ? "(^|/)" : pattern.startsWith("^") ? "^" : "";
    const end = pattern.endsWith("$") && !pattern.endsWith("\\$") ? "$" : "";
    const plain = pattern.slice(anchor.length, pattern.length - end.length).replaceAll("[.]", ".");
    const shown = this.show(property, plain);
    return shown === hidden ? hidden : anchor + shown.replaceAll(".", "[.]") + end;
  }

  /** Whether a text is a name that the run has given. */
  isName(text: string): boolean {
    const { ids, cluster } = this.#names;
    const id = ids.find((one) => text.startsWith(one)) ?? probeTag.exec(text)?.[0];
    if (id === undefined) return constantNames.includes(text) || text === cluster;
    return tail.test(text.slice(id.length));
  }

  #isNqn(text: string): boolean {
    const prefix = [this.#names.nqnPrefix, probeNqnPrefix].find((one) => text.startsWith(`${one}:`));
    return prefix !== undefined && this.isName(text.slice(prefix.length + 1));
  }

  /** A record of a volume of the run's own cluster, in which every field has a short word. */
  #isRecord(text: string): boolean {
    if (!recordForm.test(text) || !text.includes(` c=${this.#names.cluster} `)) return false;
    return text.slice(6, -1).split(" ").every((field) =>
      field.slice(2).split(/[@/,.-]/).every((token) => recordToken.test(token))
    );
  }

  /** A path of which every part is the run's own, its base path replaced; undefined for another. */
  #path(text: string): string | undefined {
    const slash = text.startsWith("/") ? "/" : "";
    const path = text.slice(slash.length);
    const { mountPoint, basePath } = this.#names;
    const places: readonly (readonly [string, string])[] = [
      [basePath.slice(1), standIn.basePath.slice(1)],
      [this.#inside, standIn.folder],
      ...[mountPoint, "pool"].includes(path) && path === mountPoint
        ? [[mountPoint, standIn.mountPoint] as const]
        : [],
      ["", ""],
    ];
    for (const [place, shown] of places) {
      const forms = [place, place.replace(/[^A-Za-z0-9/_.-]/g, ".")];
      const form = forms.find((one) => path === one || one === "" || path.startsWith(`${one}/`));
      if (form === undefined) continue;
      const rest = form === "" ? path : path.slice(form.length);
      if (rest.split("/").every((part) => this.isName(part))) return slash + shown + rest;
    }
    return undefined;
  }
}

/**
 * A line that a router printed, with public words, small numbers and own names only.
 *
 * @param hide called with each word that is not shown
 */
export function showLine(line: string, own: OwnText, hide: (word: string) => unknown): string {
  const words = line.split(/\s+/).filter((word) => word !== "");
  const shown = words.slice(0, maxWords).map((word) => {
    const bare = word.replace(/^[("'[]+|[)"',;:.\]]+$/g, "");
    const isPublic = publicWords.has(bare.toLowerCase()) || /^\d{0,4}$/.test(bare) || propertyForm.test(bare);
    const text = isPublic ? bare : own.show("", bare);
    if (text !== hidden) return word.replace(bare, text);
    hide(bare);
    return hidden;
  });
  return shown.join(" ").replaceAll(/…(?: …)+/g, hidden);
}

/** How much of a line is read: a router may print any amount. */
const maxWords = 60;

/** The properties and menus that refusals repeat. */
const propertyForm =
  /^(?:nvme-tcp-(?:export|server-(?:port|nqn|allow-host-name))|file-(?:path|size|offset)|fs-label|mount-(?:filesystem|point)|\/(?:disk|file)(?:\/[a-z]{3,9})*|proplist|where|comment)$/;
