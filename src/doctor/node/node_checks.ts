import { readMountTable } from "../../filesystem/mountinfo.ts";
import { readPropagation } from "../../filesystem/propagation.ts";
import { checkDeviceLayer } from "./device_layer.ts";
import { checkEncryption } from "./encryption.ts";
import { checkDiscards } from "./discards.ts";
import type { ModuleFiles } from "./modules.ts";
import { checkMultipath, checkTargets, checkTimeouts, checkTransport, targetsOf } from "./nvme.ts";
import { type Finding, type FindingListener, problem, skipped } from "../../volume/model/finding.ts";
import { hostIdentityOf } from "../../volume/model/host/identity.ts";
import { judgeVolumes } from "./volume_judge.ts";
import { viewVolume } from "./volume_view.ts";
import { judgeConnections, judgeIdentity, type NodeVolume, volumesOfNode } from "./volumes.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { NodeReading } from "./check.ts";
import { checkTools, judgeDev, judgeKubelet, judgeStateFolder } from "./machine.ts";

/**
 * Checks everything that a node needs to connect and mount volumes. A check that cannot be made is a finding, and does
 * not prevent the others.
 *
 * @throws the reason of the call's end
 */
export async function examineNode(reading: NodeReading, found: FindingListener): Promise<void> {
  const { files, processes, context, options: { config, kind, nodeIdGuessed } } = reading;
  const modules = modulesOf(reading);
  const volumes = await volumesOrReason(reading);
  const attempt = async (check: string, work: Work) =>
    (await findingsOf(reading, check, work)).forEach(found);
  const ofBlock = (check: string, work: Work) =>
    attempt(check, kind === "block" ? work : () => skipped(check, "not used by --kind directory"));
  const ofNvme = (check: string, work: Work) =>
    ofBlock(
      check,
      config.connector === "nvme-tcp"
        ? work
        : () => skipped(check, `not used by --connector ${config.connector}`),
    );
  await ofNvme("nvme-transport", () => checkTransport(files, modules));
  await ofBlock("nvme-multipath", () => checkMultipath(files));
  await ofNvme("device-layer", () => checkDeviceLayer(files, modules, config.deviceLayer));
  await ofNvme("encryption", () => checkEncryption(files, modules));
  await attempt(
    "tools",
    () => checkTools(processes, { connector: config.connector, kind, besideImage: nodeIdGuessed }, context),
  );
  await attempt("mounts", () => mounts(reading));
  await attempt("host-nqn", () => identity(reading));
  await ofBlock("nvme-timeouts", () => checkTimeouts(files, config.nqnPrefix));
  await attempt("volumes", () => connected(reading, volumes));
  await attempt("discards", () => discards(reading, volumes));
  await ofNvme("nvme-target", () => target(reading, volumes));
}

type Findings = Finding | readonly Finding[];
type Work = () => Findings | Promise<Findings>;

async function findingsOf(
  { context }: NodeReading,
  check: string,
  work: Work,
): Promise<readonly Finding[]> {
  try {
    return [await work()].flat();
  } catch (error) {
    context.signal.throwIfAborted();
    return [problem(check, `cannot be checked: ${messageOf(error)}`)];
  }
}

function modulesOf({ files, paths }: NodeReading): ModuleFiles {
  const release = () => files.readText("/proc/sys/kernel/osrelease") ?? "";
  // A file that may not be read counts as missing, as it mostly is in a container.
  return { read: (name) => paths.readFile(`/lib/modules/${release()}/${name}`).catch(() => undefined) };
}

async function mounts(reading: NodeReading): Promise<readonly Finding[]> {
  const { files, paths, options: { config, kubeletPath }, context } = reading;
  const table = readMountTable(files);
  const kubelet = await paths.info(kubeletPath, context);
  const propagation = readPropagation(files);
  return [
    judgeDev(table),
    judgeKubelet({ path: kubeletPath, exists: kubelet?.kind === "directory", table, propagation }),
    judgeStateFolder({ path: config.stateDirectory, state: await stateFolder(reading), table }),
  ];
}

/** Only writing a file and removing it again proves that. */
async function stateFolder({ files, paths, options: { config }, context }: NodeReading) {
  const folder = config.stateDirectory;
  try {
    const info = await paths.info(folder, context);
    if (info === undefined) return "absent";
    if (info.kind !== "directory") return { reason: "it is not a folder" };
    const file = `${folder}/.doctor-${files.readLink("/proc/self") ?? "0"}`;
    await paths.writeFile(file, "", 0o600);
    await paths.removeFile(file);
    return "writable";
  } catch (error) {
    context.signal.throwIfAborted();
    return { reason: messageOf(error) };
  }
}

function identity({ options: { config, nodeIdGuessed } }: NodeReading): Finding {
  return judgeIdentity(config.nodeId, nodeIdGuessed, hostIdentityOf(config.nodeId));
}

async function volumesOrReason({ deps, context }: NodeReading): Promise<readonly NodeVolume[] | string> {
  if (typeof deps === "string") return deps;
  try {
    return await volumesOfNode(deps, context);
  } catch (error) {
    context.signal.throwIfAborted();
    return messageOf(error);
  }
}

async function connected(
  { deps, files, context, options }: NodeReading,
  volumes: readonly NodeVolume[] | string,
): Promise<readonly Finding[]> {
  if (typeof deps === "string" || typeof volumes === "string") {
    return [problem("volumes", `cannot list the staged and connected volumes: ${volumes}`)];
  }
  const { config, nodeIdGuessed } = options;
  const adapters = { deps, files, depth: "shown" } as const;
  return [
    ...judgeConnections(volumes, hostIdentityOf(config.nodeId), nodeIdGuessed),
    ...judgeVolumes(await Promise.all(volumes.map((volume) => viewVolume(adapters, volume, context)))),
  ];
}

async function discards(
  { deps, files, context }: NodeReading,
  volumes: readonly NodeVolume[] | string,
): Promise<readonly Finding[]> {
  // Another check reports why there are none.
  if (typeof deps === "string" || typeof volumes === "string") return [];
  return [await checkDiscards(deps, files, volumes, context)];
}

async function target(
  reading: NodeReading,
  volumes: readonly NodeVolume[] | string,
): Promise<readonly Finding[]> {
  const { network, options, options: { config }, context } = reading;
  const known = typeof volumes === "string" ? [] : volumes;
  const host = hostIdentityOf(config.nodeId);
  const discover = (at: Parameters<NodeReading["discover"]>[0]) => reading.discover(at, host, context);
  return await checkTargets(targetsOf(options, known), known, config.nqnPrefix, { network, discover });
}
