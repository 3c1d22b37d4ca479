import type { Container } from "../../deploy/objects.ts";

/** How the rig treats a rendered flag: it keeps it, or replaces it by a function of its value. */
export type Fate = "kept" | ((value: string) => string);

/** How each flag of a container is treated, by its name without dashes. */
export type Fates = Readonly<Record<string, Fate>>;

/** Flags that are kept as they are rendered. */
export function kept(...names: readonly string[]): Fates {
  return Object.fromEntries(names.map((name) => [name, "kept" as const]));
}

/** The names of the flags among these arguments, without dashes. */
export function flagsOf(args: readonly string[]): string[] {
  return args.map((word) => word.replace(/^--/, "").replace(/=.*/, ""));
}

/**
 * The arguments of a rendered container for a process of the rig: unchanged except for what differs there.
 *
 * @throws {Error} for a flag without a fate, and for a replacement of a flag that is not rendered
 */
export function argsForRig({ name, args }: Pick<Container, "name" | "args">, fates: Fates): string[] {
  const met = new Set<string>();
  const text = args.map((word) => {
    const [, flag, value = ""] = /^--?([a-z][a-z0-9-]*)(?:=(.*))?$/.exec(word) ?? [];
    if (flag === undefined) return word;
    const fate = Object.hasOwn(fates, flag) ? fates[flag] : undefined;
    if (fate === undefined) {
      throw new Error(`Nobody has said what becomes of this flag in the rig: container=${name} flag=${word}`);
    }
    met.add(flag);
    return fate === "kept" ? word : fate(value);
  });
  const idle = Object.entries(fates).filter(([flag, fate]) => fate !== "kept" && !met.has(flag));
  if (idle.length === 0) return text;
  throw new Error(`The chart does not render what the rig replaces: container=${name} flag=${idle[0]![0]}`);
}

/**
 * The environment of a rendered container.
 *
 * @param fields the pod's own fields, by their path
 * @throws {Error} for a variable that is neither such a field nor a text
 */
export function envForRig(
  { name, env = [] }: Pick<Container, "name" | "env">,
  fields: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(env.map((variable) => {
    const value = variable.value ?? fields[variable.valueFrom?.fieldRef?.fieldPath ?? ""];
    if (value !== undefined) return [variable.name, value];
    throw new Error(`Nobody has said what this variable is: container=${name} variable=${variable.name}`);
  }));
}
