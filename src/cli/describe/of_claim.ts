import { readNames } from "../../controller/names/name_plates.ts";
import { getVolumeHealth } from "../../controller/volumes/health.ts";
import { systemClock } from "../../host/clock.ts";
import { ApiError } from "../../kubernetes/api.ts";
import { advice, type Finding, fine, problem, skipped } from "../../volume/model/finding.ts";
import { routerFixes } from "../../doctor/router/fixes.ts";
import { VolumeError } from "../../volume/errors.ts";
import { readBackendOf, systemFiles } from "../config/backends.ts";
import { clusterFlags, readClusterAddress } from "../config/cluster.ts";
import { routerFlags, serveFlags } from "../config/flag_tables.ts";
import { withController } from "../controller_command.ts";
import { formatFindings } from "../doctor/doctor.ts";
import { FlagError, type FlagTable, type FlagValues, readFlags } from "../flags.ts";
import { type CommandIo, exitCodes } from "../io.ts";
import { claimOfVolume, type ClaimTrace, followClaim, podsOf } from "./claim.ts";

/** Flags of `rds-csi describe` about a claim, besides those of the router. */
export const claimFlags: FlagTable = {
  "json": { form: "switch", help: "Print the findings as a JSON array." },
  "kubernetes": clusterFlags["kubernetes"]!,
  "kubeconfig": clusterFlags["kubeconfig"]!,
  "driver-name": serveFlags["driver-name"]!,
};

/** How long cluster and router may take, in milliseconds. */
const timeoutMs = 60_000;

/** `rds-csi describe` of a claim: finds where it hangs. */
export async function describeClaim(args: readonly string[], io: CommandIo): Promise<number> {
  const [subject = "", ...rest] = args;
  const [, namespace, name, volume] = /^(?:pvc\/([^/]+)\/([^/]+)|pv\/([^/]+))$/.exec(subject) ?? [];
  const flags = readFlags({ ...claimFlags, ...routerFlags }, rest, io.env);
  if (name === undefined && volume === undefined) {
    flags.addProblems(["name a claim: pvc/NAMESPACE/NAME, or pv/NAME of its PersistentVolume"]);
  }
  const address = readClusterAddress(flags, io.env);
  if (address === undefined) {
    flags.addProblems(["a claim can only be followed in a cluster: use --kubeconfig"]);
  }
  flags.assertNoProblems();
  const driverName = flags.text("driver-name");
  const { KubernetesClient } = await import("../../kubernetes/client.ts");
  const client = await KubernetesClient.open(address!, systemClock);
  try {
    const follow = async () => {
      const claim = volume === undefined
        ? { namespace: namespace!, name: name! }
        : await claimOfVolume(client, volume, io.signal);
      if (claim !== undefined) {
        const trace = await followClaim(client, { ...claim, driverName }, systemClock.now(), io.signal);
        return { ...trace, namespace: claim.namespace, pods: await podsOf(client, claim, io.signal) };
      }
      throw new VolumeError(
        "not-found",
        `Cannot follow ${subject} because no claim has it, or it does not exist`,
      );
    };
    const trace = await follow().catch((error) => {
      if (!(error instanceof ApiError)) throw error;
      throw new VolumeError("unavailable", `Cannot follow the claim: ${error.message}`, { cause: error });
    });
    const cluster = { address: address!, driverName };
    const router = trace.handle === undefined
      ? undefined
      : await onRouter(trace.handle, flags, cluster, args, io);
    return print(trace, router, flags.switch("json"), io);
  } finally {
    client.close();
  }
}

/** What the router says of the volume, and what that means for the pods that have it. */
interface RouterSays {
  readonly finding: Finding;
  /** Their devices are gone since the router booted; "unknown" where it was not asked, or did not answer. */
  readonly podsLost: boolean | "unknown";
}

/** The problems of the volume on the router. */
async function onRouter(
  handle: string,
  flags: FlagValues,
  cluster: Parameters<typeof withController>[0]["cluster"],
  args: readonly string[],
  io: CommandIo,
): Promise<RouterSays> {
  try {
    const files = { ...await systemFiles(args, io.env), hasCluster: true };
    const { config, id } = readBackendOf(handle, flags, files);
    const run = { name: "describe", config, timeoutMs, cluster };
    const { problems, plate } = await withController(run, io, async (deps, context) => ({
      ...await getVolumeHealth(deps, id, context),
      plate: (await readNames(deps, context)).get(id),
    }));
    const podsLost = problems.some(({ reason }) => reason === "RouterRestarted");
    if (problems.length === 0) {
      const named = plate === undefined ? "" : `; its name plate there says ${plate}`;
      return { finding: fine("router", `the volume exists and is healthy${named}`), podsLost };
    }
    const found = problems.map(({ reason, message }) => `${reason}: ${message}`).join("; ");
    const isDamaged = problems.some(({ reason }) => reason === "RecordDamaged");
    const finding = problem("router", found, isDamaged ? routerFixes.recordDamaged(id) : undefined);
    return { finding, podsLost };
  } catch (error) {
    if (error instanceof FlagError) {
      const why = `no router was checked: ${error.problems.join("; ")}`;
      return { finding: skipped("router", why), podsLost: "unknown" };
    }
    if (!VolumeError.is(error)) throw error;
    return { finding: problem("router", error.message, advice("rds-csi doctor")), podsLost: "unknown" };
  }
}

function print(
  { findings, handle, nodes, namespace, pods }: ClaimTrace & UsedClaim,
  router: RouterSays | undefined,
  json: boolean,
  io: CommandIo,
): number {
  const all = [...findings, ...router === undefined ? [] : [router.finding]];
  const hangsAt = all.find(({ state }) => state === "problem");
  if (json) io.out(JSON.stringify(all));
  else {
    for (const line of formatFindings(all)) io.out(line);
    for (const node of nodes) {
      io.out(`On ${node}, in the driver's pod, \`rds-csi describe ${handle}\` shows the node's view.`);
    }
    io.out(`describe: ${nextStep(hangsAt, { namespace, pods, podsLost: router?.podsLost })}`);
  }
  return hangsAt === undefined ? exitCodes.ok : exitCodes.failed;
}

/** Who uses a claim. */
interface UsedClaim {
  readonly namespace: string;
  /** Undefined where this process may not list pods. */
  readonly pods: readonly string[] | undefined;
  /** See `RouterSays`. */
  readonly podsLost?: RouterSays["podsLost"] | undefined;
}

/**
 * What to do next, in one sentence. The command is for whoever reads it, with their own rights. It is to be run only for pods that
 * have lost their device: a pod that only waits goes on by itself, and one that works must not be ended.
 */
export function nextStep(
  hangsAt: Finding | undefined,
  { namespace, pods, podsLost = false }: UsedClaim,
): string {
  const names = pods === undefined ? "POD" : pods.join(" ");
  const which = pods === undefined ? ", for each POD that uses it" : "";
  const deletion = `kubectl -n ${namespace} delete pod ${names}${which}`;
  const isUsed = pods?.length !== 0;
  if (hangsAt === undefined) {
    return isUsed
      ? `nothing hangs; if a pod has errors on its volume all the same, delete it: ${deletion}`
      : "nothing hangs, and no pod uses it";
  }
  const mended = `it hangs at the ${hangsAt.check}; once that is mended`;
  if (!isUsed || hangsAt.check === "claim" || hangsAt.check === "attachment") {
    return `${mended}, it goes on by itself`;
  }
  if (podsLost === true) return `the router has restarted; once it is back, delete the pods: ${deletion}`;
  if (podsLost === "unknown" && hangsAt.check === "router") {
    return "the router did not say how the volume is; pods that have it may work on: end none of them for this";
  }
  return `${mended}, it goes on by itself; only a pod that ran before and has errors now has to be deleted: ${deletion}`;
}
