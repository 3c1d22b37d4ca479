// Which layers may import which, and which modules may access the machine. The one place where the direction of
// dependencies is written as code; docs/internals/architecture.md gives the reasons.

/** The imports that a layer allows. */
export interface Layer {
  /** Layers that it may import besides itself. */
  readonly layers: readonly string[];
  /** Layers of which it may only import types. */
  readonly types?: readonly string[];
  /** npm packages it may import; a trailing `*` stands for any rest. */
  readonly packages?: readonly string[];
}

const PURE = ["volume", "async"];
const ADAPTER: Layer = { layers: [...PURE, "host"] };

/** Every folder of `src/`, and `top` for the files in `src/` itself. A layer that is not listed may not exist. */
export const LAYERS: Readonly<Record<string, Layer>> = {
  volume: { layers: [] },
  async: { layers: ["volume"] },
  router_profile: { layers: [] },
  host: { layers: PURE },
  telemetry: { layers: ["volume", "host"], packages: ["@logtape/logtape"] },
  controller: { layers: PURE },
  node: { layers: PURE },
  routeros: { layers: [...PURE, "host", "router_profile"], packages: ["ssh2"] },
  nvme: ADAPTER,
  device_mapper: ADAPTER,
  loop: ADAPTER,
  nfs: ADAPTER,
  filesystem: ADAPTER,
  kubernetes: { ...ADAPTER, packages: ["@kubernetes/client-node", "yaml"] },
  simulator: { layers: ["host", "router_profile"], types: ["volume"], packages: ["ssh2"] },
  csi: {
    layers: ["controller", "node", ...PURE, "host", "telemetry"],
    packages: ["@grpc/*"],
  },
  doctor: { layers: [...PURE, "host", "router_profile", "node", "routeros", "nvme", "filesystem"] },
  cli: {
    layers: [
      ...[
        "csi",
        "controller",
        "node",
        ...PURE,
        "host",
        "telemetry",
        "simulator",
        "router_profile",
        "doctor",
      ],
      ...["routeros", "nvme", "device_mapper", "loop", "nfs", "filesystem", "kubernetes"],
    ],
    packages: ["yaml"],
  },
  main: { layers: ["cli", "host", "telemetry", "volume"] },
};

/** Built-in modules that spawn, wait or read the environment: forbidden like the globals that do. */
const REACHING_BUILTINS = [
  "child_process",
  "process",
  "timers",
  "timers/promises",
  "worker_threads",
  "cluster",
];

/** Globals that access time, randomness, processes, the command line or the terminal. */
export const REACHING_GLOBALS: ReadonlySet<string> = new Set([
  ...["Date.now", "performance.now", "Math.random", "setTimeout", "setInterval", "AbortSignal.timeout"],
  ...["crypto.getRandomValues", "crypto.randomUUID", "Deno.Command", "Deno.env", "Deno.args", "Deno.exit"],
  ...["Deno.stdin", "Deno.stdout", "Deno.stderr", "prompt", "confirm", "alert"],
]);

/** Modules that may access the machine, and how; they pass it on to all others. */
const MAY_REACH: readonly { readonly where: RegExp; readonly what: RegExp }[] = [
  { where: /^src\/(host|telemetry)\//, what: /^(?!Deno\.(exit|std))/ },
  // All else prints through the two that leave control characters out: src/cli/io.ts for commands, and this log.
  { where: /^src\/telemetry\/log\.ts$/, what: /^Deno\.stderr$/ },
  { where: /^src\/cli\/config\/config\.ts$/, what: /^Deno\.(env|args)$/ },
  // Commands connect the driver with the machine, and may set a deadline for the whole command.
  { where: /^src\/cli\//, what: /^AbortSignal\.timeout$/ },
  // This command tests what the executable may do, so it has to try. setImmediate orders events and measures no time.
  { where: /^src\/csi\/server\/http2_guard\.ts$/, what: /^node:timers$/ },
  { where: /^src\/main\.ts$/, what: /./ },
];

/** The modules that send changes of volumes when they are called, which only the modules beside them do. */
const SENDING = /^src\/controller\/records\/(commit|take|write)\.ts$/;

/** Whether a file only serves tests, and may therefore import across layers. */
export function isTestFile(path: string): boolean {
  return path.startsWith("tests/") || /_test(_support)?\.ts$/.test(path);
}

/** The layer of a file below `src/`; undefined elsewhere. */
export function layerOf(path: string): string | undefined {
  const [top, first, second] = path.split("/");
  if (top !== "src" || first === undefined) return undefined;
  return second === undefined ? first.replace(/\.ts$/, "") : first;
}

/**
 * Why `file` may not import `specifier`; undefined when it may. `target` is the imported file's path from the root of
 * the project, undefined for packages and built-ins.
 */
export function importProblem(
  file: string,
  specifier: string,
  target: string | undefined,
  typeOnly: boolean,
): string | undefined {
  const from = layerOf(file);
  if (from === undefined || isTestFile(file)) return undefined;
  const layer = LAYERS[from];
  if (layer === undefined) return `the layer ${from} is not declared in tools/verify_layers.ts`;
  if (specifier.startsWith("node:")) return builtinProblem(file, specifier);
  if (target === undefined) return packageProblem(from, layer, specifier);
  const to = layerOf(target);
  if (to === undefined || isTestFile(target)) return `the product never imports ${target}`;
  if (from === "volume" && to === from) return volumeProblem(file, target);
  if (SENDING.test(target) && !typeOnly && !file.startsWith("src/controller/records/")) {
    return `only src/controller/records/loop.ts changes volumes: ${target} gives others its types alone`;
  }
  if (to === from || layer.layers.includes(to)) return undefined;
  if (layer.types?.includes(to)) return typeOnly ? undefined : `${from} may import only types from ${to}`;
  return `${from} never imports ${to}`;
}

/** Inside `volume/`, `rules/` may import `ports/`, and both `model/`. */
function volumeProblem(file: string, target: string): string | undefined {
  const order = ["model", "ports", "rules"];
  const [from = "", to = ""] = [file, target].map((path) => path.split("/")[2]);
  return order.includes(from) && order.indexOf(to) > order.indexOf(from)
    ? `volume/${from} never imports volume/${to}`
    : undefined;
}

/** Why `file` may not use the global `name` (`setTimeout`, `Deno.env`); undefined when it may. */
export function globalProblem(file: string, name: string): string | undefined {
  if (layerOf(file) === undefined || isTestFile(file) || !REACHING_GLOBALS.has(name)) return undefined;
  if (mayReach(file, name)) return undefined;
  return `${name} is reached for, not passed in`;
}

function builtinProblem(file: string, specifier: string): string | undefined {
  const name = specifier.slice("node:".length);
  if (!REACHING_BUILTINS.includes(name) || mayReach(file, specifier)) return undefined;
  return `${specifier} is reached for, not passed in`;
}

function mayReach(file: string, name: string): boolean {
  return MAY_REACH.some(({ where, what }) => where.test(file) && what.test(name));
}

function packageProblem(from: string, layer: Layer, specifier: string): string | undefined {
  const allowed = layer.packages?.some((name) =>
    name.endsWith("*")
      ? specifier.startsWith(name.slice(0, -1))
      : specifier === name || specifier.startsWith(`${name}/`)
  );
  return allowed ? undefined : `${from} never imports ${specifier}`;
}
