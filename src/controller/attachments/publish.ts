import { isLegacyEpoch } from "../../volume/model/epoch.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { VolumeParameters } from "../../volume/model/parameters.ts";
import type { ContextValues } from "../../volume/model/publish_context.ts";
import { isPlain } from "../../volume/model/sources.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import {
  decidePublish,
  isExportedAsRecorded,
  type PublishRequest,
  withoutLayer,
} from "../../volume/rules/publish.ts";
import { assertOwned } from "../../volume/rules/ownership.ts";
import { holderOf, maxGrowths, type OwnedVolume, type VolumeRecord } from "../../volume/model/record.ts";
import { assertImageShown, assertImageUsable, notFound, readOwnView } from "../load.ts";
import { fits } from "../records/comment.ts";
import { attachRefusal, reportingRefusal } from "../refusals.ts";
import { isOlderThan, latestEpoch, latestEpochIfReported, olderEpoch } from "../records/epochs.ts";
import { changeByRule, type Decision } from "../records/loop.ts";
import { exported, withdrawal } from "../records/steps.ts";
import type { View } from "../records/view.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";
import { publishContext } from "./context.ts";
import { withConsent, withConsentNoted } from "./first_format.ts";
import { ForgottenGrowths } from "./forgotten_growths.ts";
import { assertNoHolderMissing, assertPair, reasonStillUnfenced } from "./joining.ts";

/**
 * Publishes a volume to a node: the record names the holder and the export is on under the epoch's NQN. Two commands;
 * one when it is so already, or when the router has the record of an unpublished volume that this process has written
 * last. One more when it was imported, or the router forgot that it had grown; two more when it is imported now.
 *
 * @throws {VolumeError} not-found, node-unknown, published-elsewhere, exists-incompatible, precondition, unavailable
 */
export async function publishVolume(
  deps: ControllerDeps,
  id: string,
  request: PublishRequest,
  parameters: VolumeParameters,
  context: CallContext,
): Promise<ContextValues> {
  const call = { ...deps, context };
  const refusal = (error: VolumeError) => attachRefusal(id, request.nodeId, error);
  const published = await reportingRefusal(deps, refusal, async () => {
    const read = () => readToPublish(call, id, request);
    const first = request.isStatic ? await read() : undefined;
    const growths = new ForgottenGrowths(call);
    const rule = (view: View) => decidePublishing(call, view, request, parameters, growths);
    return await changeByRule(call, { id, verb: "publish", first, read }, rule);
  });
  call.projection.show(id, published.record);
  return publishContext(call, published, request, parameters);
}

/** A static volume may have to be imported first, and one of the legacy driver taken over. */
async function readToPublish(call: ControllerCall, id: string, request: PublishRequest): Promise<View> {
  const claim = request.isStatic
    ? {
      kind: request.capability,
      mode: request.capability.mode,
      exportIsUnused: false,
      encrypted: request.encrypted === true,
    }
    : undefined;
  const view = await readOwnView(call, id, "publish", claim);
  if (view.volume === undefined) throw notFound("publish", id);
  return view;
}

function ownedIn({ settings }: ControllerCall, { volume }: View): OwnedVolume {
  return assertOwned(volume!, settings.cluster, "publish");
}

/** Decides by what is known of the volume. Only a new epoch begins unread: of an older one a read tells more. */
async function decidePublishing(
  call: ControllerCall,
  view: View,
  request: PublishRequest,
  parameters: VolumeParameters,
  growths: ForgottenGrowths,
): Promise<Decision<OwnedVolume>> {
  const volume = ownedIn(call, view);
  if (view.isAssumed && !mayBeginUnread(call, volume)) return { need: "own" };
  assertImageUsable(call, volume, view, "publish");
  // An epoch that goes on has shown its image when it began.
  if (volume.record.holders.length === 0) assertImageShown(volume, view, "publish");
  const grown = growths.again(volume, view);
  if (grown !== undefined) return grown;
  await assertKnownNode(call, request.nodeId);
  const holds = holderOf(volume.record, request.nodeId) !== undefined;
  const machine = holds ? undefined : await call.nodes.machineOf(request.nodeId, call.context);
  const stillUnfenced = await reasonStillUnfenced(call, volume, { ...request, machine });
  const isStep = !holds || !isExportedAsRecorded(volume);
  const latest = await (isStep ? latestEpochIfReported : latestEpoch)(call, volume);
  const { clock, random } = call;
  const facts = { nowMs: clock.now(), random, machine, stillUnfenced, latestEpoch: latest ?? 0 };
  const decision = decidePublish(volume, request, facts);
  const port = portOf(volume, request.nodeId, parameters);
  if (decision.action === "withdraw") {
    return view.isAssumed ? { need: "own" } : withdrawnFirst(call, volume, latest);
  }
  const record = asFits(volume, decision.record);
  if (decision.action === "begin") {
    const begun = await withConsent(call, volume, record, request, latest);
    const step = exported(call, "begin", volume, { record: begun, port }, view.isAssumed);
    return { step, next: (after) => withConsentNoted(call, after, begun !== record) };
  }
  const isShared = request.capability.mode === "multi-node-multi-writer";
  if (isShared) await assertNoHolderMissing(call, volume, request.nodeId);
  if (decision.action === "held" && volume.stored.exportPort === port) {
    return { answer: volume, stands: volume };
  }
  if (isShared && !holds) await assertPair(call, volume, request.nodeId);
  return { step: exported(call, "continue", volume, { record, port }), next: (after) => after };
}

/** Nobody has it, and its export is off. */
function mayBeginUnread({ settings }: ControllerCall, volume: OwnedVolume): boolean {
  return isPlain(volume, settings.cluster) && volume.record.holders.length === 0 && !volume.stored.exported;
}

/** The export goes off that is nobody's on record, or of an older epoch than the cluster knows; then the rule decides again. */
function withdrawnFirst(
  call: ControllerCall,
  volume: OwnedVolume,
  latest: number | undefined,
): Decision<OwnedVolume> {
  if (latest === undefined || !isOlderThan(latest, volume)) {
    return { step: withdrawal(call, volume), next: () => "again" };
  }
  const next = () => {
    call.events.occurred(olderEpoch(volume, latest));
    return "again" as const;
  };
  return { step: withdrawal(call, volume, latest), next };
}

/**
 * The port of the export. Another one would cut the nodes that hold the volume already: it changes only for the one node
 * that holds it, and only to the port that its PersistentVolume names.
 */
function portOf(
  volume: OwnedVolume,
  nodeId: string,
  { nvmePort, namesNoPort = false }: VolumeParameters,
): number {
  const { stored, record } = volume;
  const keeps = isHeldByOthers(volume, nodeId) || isLegacyEpoch(record.epoch) || namesNoPort;
  const isOfEpoch = record.holders.length > 0 && stored.exportPort !== 0 &&
    isExportedAsRecorded({ ...volume, stored: { ...stored, exported: true } });
  return keeps && isOfEpoch ? stored.exportPort : nvmePort;
}

function isHeldByOthers({ record }: OwnedVolume, nodeId: string): boolean {
  return record.holders.some((holder) => holder.nodeId !== nodeId);
}

/** The mark of a device layer only allows growth: it is left out where it would take room that holders may need. */
function asFits(volume: OwnedVolume, record: VolumeRecord): VolumeRecord {
  const isRoom = record.layered === undefined || fits(volume, { ...record, growths: maxGrowths });
  return isRoom ? record : withoutLayer(record);
}

async function assertKnownNode(call: ControllerCall, nodeId: string): Promise<void> {
  if (await call.nodes.isKnown(nodeId, call.context)) return;
  throw new VolumeError(
    "node-unknown",
    `Cannot publish the volume because the node is not known: node=${nodeId}; check that the driver's pod on that node runs ` +
      "and has registered with the kubelet; without a cluster, set --known-node",
  );
}
