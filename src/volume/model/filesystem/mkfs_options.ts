import { VolumeError } from "../../errors.ts";
import type { FilesystemType } from "../capabilities.ts";

/** What may follow an option: one value of that form, or a comma-separated list of `key` and `key=value`. */
type Form = { readonly value: RegExp } | { readonly keys: ReadonlySet<string> };

const number: Form = { value: /^[0-9]{1,12}$/ };
/** With `journal_dev`, mkfs would make another file system's journal. */
const features: Form = { value: /^(?!.*\bjournal_dev\b)\^?[a-z0-9_]+(?:,\^?[a-z0-9_]+)*$/ };

function keys(...names: readonly string[]): Form {
  return { keys: new Set(names) };
}

/**
 * The options that a StorageClass may pass. Any other option could force mkfs, name another device or file, or make an
 * incomplete file system or none.
 */
const allowed: Readonly<Record<FilesystemType, Readonly<Record<string, Form>>>> = {
  ext4: {
    "-b": number,
    "-C": number,
    "-g": number,
    "-G": number,
    "-i": number,
    "-I": number,
    "-m": { value: /^[0-9]{1,2}(?:\.[0-9]{1,2})?$/ },
    "-N": number,
    "-T": { value: /^[a-z0-9]+(?:,[a-z0-9]+)*$/ },
    "-e": { value: /^(?:continue|remount-ro)$/ },
    "-E": keys("stride", "stripe_width", "stripe-width", "packed_meta_blocks", "num_backup_sb", "resize"),
    "-J": keys("size"),
    "-O": features,
  },
  xfs: {
    "-b": keys("size"),
    "-d": keys("agcount", "agsize", "sunit", "swidth", "su", "sw", "noalign", "sectsize"),
    "-i": keys("size", "perblock", "maxpct", "sparse", "nrext64", "exchange"),
    "-l": keys("size", "sunit", "su", "sectsize", "lazy-count"),
    "-m": keys("finobt", "rmapbt", "reflink", "inobtcount", "bigtime"),
    "-n": keys("size", "parent"),
    "-s": keys("size"),
  },
};

/**
 * Parses the mkfs options of a StorageClass: option and value as separate words, each option once.
 *
 * @throws {VolumeError} invalid when a word is not on the list of allowed options
 */
export function parseMkfsOptions(text: string, filesystem: FilesystemType): readonly string[] {
  const words = text.split(" ").filter((word) => word !== "");
  for (let at = 0; at < words.length; at += 2) {
    const [option, value] = [words[at]!, words[at + 1]];
    const form = Object.hasOwn(allowed[filesystem], option) ? allowed[filesystem][option] : undefined;
    if (form === undefined) throw refused(filesystem, option, "it is not among those that may be passed");
    if (option === "-e" && value === "panic") {
      throw refused(
        filesystem,
        option,
        "an error of one volume would stop the node with all that runs on it",
      );
    }
    if (value === undefined || !hasForm(value, form)) throw refused(filesystem, option, "of its value");
    if (words.indexOf(option) < at) throw refused(filesystem, option, "it is there twice");
  }
  return words;
}

/**
 * Replaces `-e panic` in the mkfs options of a volume context that was written when it was still accepted: a context
 * never changes, and its volume must stay usable.
 */
export function withoutPanic(text: string): string {
  return text.replace(/(?<=^| )-e +panic(?= |$)/, "-e remount-ro");
}

function hasForm(value: string, form: Form): boolean {
  if ("value" in form) return form.value.test(value);
  return value.split(",").every((item) => {
    const [, key] = /^([a-z][a-z0-9_-]*)(?:=[A-Za-z0-9.]+)?$/.exec(item) ?? [];
    return key !== undefined && form.keys.has(key);
  });
}

function refused(filesystem: FilesystemType, option: string, why: string): VolumeError {
  return new VolumeError(
    "invalid",
    `Cannot use the mkfs option for ${filesystem} because ${why}: ` +
      `option=${JSON.stringify(option.slice(0, 32))}; ` +
      `expected "-x value" pairs with -x one of ${Object.keys(allowed[filesystem]).join(" ")}`,
  );
}
