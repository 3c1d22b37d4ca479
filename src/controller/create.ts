import { assertAbsenceProven } from "../volume/absence.ts";
import { assertRoom, getPool, overPromisedBytes } from "../volume/capacity.ts";
import { VolumeError } from "../volume/errors.ts";
import { parentFolder } from "../volume/ids.ts";
import { assertOwned, type OwnedVolume } from "../volume/ownership.ts";
import type { CallContext, Inventory, MutationOutcome, NewVolume } from "../volume/ports.ts";
import { type CreateRequest, decideCreate, planVolume } from "../volume/provisioning.ts";
import { outdateUnsettled, remembered } from "./outcome.ts";
import type { ControllerWorld } from "./world.ts";

/**
 * Creates a volume, or finds the one that an earlier try made. Two commands; one when it exists.
 *
 * @throws {VolumeError} exists-incompatible, exhausted, out-of-range, precondition, unavailable
 */
export async function createVolume(
  world: ControllerWorld,
  request: CreateRequest,
  context: CallContext,
): Promise<OwnedVolume> {
  const { settings, store } = world;
  const plan = planVolume(request, settings.cluster, world.random);
  const view = await store.createView(plan.id, [plan.imagePath, parentFolder(plan.imagePath)], context);
  if (!view.volumes.some((volume) => volume.id === plan.id)) {
    assertAbsenceProven(view, [request.parameters.basePath], settings.settleMs);
  }
  const decision = decideCreate(view, plan, request, settings.cluster);
  if (decision.action === "exists") {
    // A removal that the router runs late would take away what is answered here.
    await outdateUnsettled(world, "create", decision.volume, context);
    return decision.volume;
  }
  assertRoom(view, request.parameters.basePath, plan.sizeBytes, settings.overcommit);
  const outcome = await store.add(decision.volume, context);
  const volume = assertAdded(world, decision.volume, outcome);
  await assertStillRoom(world, request, volume, outcome.after, context);
  return volume;
}

function assertAdded(
  world: ControllerWorld,
  plan: NewVolume,
  outcome: MutationOutcome<Inventory>,
): OwnedVolume {
  const stored = outcome.after.volumes.find((volume) => volume.id === plan.id);
  if (stored === undefined) {
    const reason = outcome.refusal === undefined
      ? "the router did not do it"
      : `the router answered ${JSON.stringify(outcome.refusal.slice(0, 200))}`;
    throw new VolumeError("unavailable", `Cannot create the volume as ${reason}: volume=${plan.id}`);
  }
  const volume = assertOwned(stored, world.settings.cluster, "create");
  const asPlanned = stored.comment === plan.comment && stored.imagePath === plan.imagePath &&
    stored.sizeBytes === plan.sizeBytes && !stored.exported;
  if (asPlanned) return volume;
  throw new VolumeError(
    "busy",
    `Cannot create the volume as the router shows another one than was added: volume=${plan.id} ` +
      `size=${stored.sizeBytes} path=${stored.imagePath}; try again`,
  );
}

/** Two controllers, or two calls at once, may both have seen the same room: whoever finds none left takes its own back. */
async function assertStillRoom(
  world: ControllerWorld,
  request: CreateRequest,
  volume: OwnedVolume,
  after: Inventory,
  context: CallContext,
): Promise<void> {
  const { basePath } = request.parameters;
  const over = overPromisedBytes(getPool(after, basePath), after.volumes, world.settings.overcommit);
  if (over === 0n) return;
  const { id, comment, imagePath } = volume.stored;
  const outcome = await remembered(
    world,
    volume.stored,
    () => world.store.remove(id, comment, imagePath, context),
  );
  if (outcome.after.volume !== undefined || outcome.after.files.some((file) => file.path === imagePath)) {
    throw new VolumeError(
      "unavailable",
      `Cannot take the volume back though the pool has no room for it: volume=${id} path=${imagePath} over=${over}`,
    );
  }
  throw new VolumeError(
    "exhausted",
    `Cannot keep the volume as others took the room at the same time: basePath=${basePath} over=${over}`,
  );
}
