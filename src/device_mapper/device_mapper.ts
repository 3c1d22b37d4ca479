import type { KernelFiles } from "../host/kernel_files.ts";
import { complaint, type Processes } from "../host/processes.ts";
import type { ToolResult } from "../host/spawn.ts";
import { VolumeError } from "../volume/errors.ts";
import { isOwnMapUuid } from "../volume/model/device_layer.ts";
import type {
  DeviceMap,
  DeviceMaps,
  MapIdentity,
  MapTable,
  ReloadOptions,
} from "../volume/ports/device_maps.ts";
import type { ProvenDevice } from "../volume/ports/node_ports.ts";
import type { CallContext } from "../volume/ports/system.ts";
import { mapDevices, mapNameOf, readMap } from "./maps_in_sys.ts";
import { formatTable, isTable, parseTable } from "./table.ts";

/** A change of a map takes milliseconds; one that takes longer waits for a device that is gone. */
const changeMs = 20_000;

/** Maps of dm-multipath, through dmsetup(8) and /sys. */
export class DeviceMapper implements DeviceMaps {
  readonly #processes: Processes;
  readonly #files: KernelFiles;
  /**
   * Whether the kernel was seen to have the target. The kernel does not unload it while there are maps, and otherwise
   * loads it again.
   */
  #hasTarget = false;
  /** UUIDs of maps whose queueing this process has ended: the layer watch must not let them queue again. */
  readonly #ended = new Set<string>();
  /** The device where each map was seen last, by name, so that not all devices are read each time. */
  readonly #seen = new Map<string, string>();

  constructor(processes: Processes, files: KernelFiles) {
    this.#processes = processes;
    this.#files = files;
  }

  async obstacle(context: CallContext): Promise<string | undefined> {
    if (this.#hasTarget) return undefined;
    // The kernel loads the target's module for this command, if it has one.
    try {
      const result = await this.#run(["target-version", "multipath"], "multipath", context);
      this.#hasTarget = result.code === 0;
      return this.#hasTarget ? undefined : `the kernel has no dm-multipath: ${complaint(result)}`;
    } catch (error) {
      if (VolumeError.is(error, "precondition")) return error.message; // dmsetup is missing.
      throw error;
    }
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async find(name: string): Promise<DeviceMap | undefined> {
    return this.#find(name);
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async list(): Promise<readonly DeviceMap[]> {
    return mapDevices(this.#files).flatMap((device) => {
      const map = readMap(this.#files, device);
      return map !== undefined && isOwnMapUuid(map.uuid) ? [map] : [];
    });
  }

  async table(map: DeviceMap, context: CallContext): Promise<MapTable> {
    const { name } = map;
    const table = await this.#done(["table"], map, [], "read the map", context);
    const status = await this.#done(["status"], map, [], "read the map", context);
    const parsed = parseTable(table.stdout, status.stdout);
    if (parsed !== undefined) return parsed;
    throw new VolumeError(
      "unavailable",
      `Cannot read the map because its table is none of this driver's: map=${name} table=${table.stdout.trim()}`,
    );
  }

  async make(identity: MapIdentity, below: ProvenDevice, context: CallContext): Promise<DeviceMap> {
    const { name, uuid } = identity;
    const there = this.#find(name);
    if (there !== undefined) {
      this.#assertSame(there, identity);
      return await this.reload(there, below, below.sizeBytes, context);
    }
    const table = formatTable(below.sizeBytes, below.deviceNumber);
    const result = await this.#run(["create", name, "--uuid", uuid, "--table", table], name, context);
    if (result.code !== 0) {
      throw new VolumeError("unavailable", `Cannot make the map: map=${name}: ${complaint(result)}`);
    }
    this.#ended.delete(uuid);
    return await this.#readBack(identity, below, below.sizeBytes, context);
  }

  async reload(
    map: DeviceMap,
    below: ProvenDevice,
    sizeBytes: bigint,
    context: CallContext,
    { unlessEnded = false }: ReloadOptions = {},
  ): Promise<DeviceMap> {
    if (!unlessEnded) this.#ended.delete(map.uuid);
    const what = "reload the map";
    this.#assertSame(this.#find(map.name), map);
    await this.#done(["load"], map, ["--table", formatTable(sizeBytes, below.deviceNumber)], what, context);
    await this.#assertNotLarger(map, sizeBytes, context);
    if (this.#ended.has(map.uuid)) {
      await this.#done(["clear"], map, [], what, context);
      throw endedMeanwhile(map);
    }
    // Suspends, activates the table, and resumes, in one call of the kernel: a killed process never leaves the map
    // suspended.
    await this.#done(["resume", "--noflush", "--nolockfs"], map, [], what, context);
    if (this.#ended.has(map.uuid)) {
      await this.endQueueing(map, context);
      throw endedMeanwhile(map);
    }
    return await this.#readBack(map, below, sizeBytes, context);
  }

  async failPath(map: DeviceMap, context: CallContext): Promise<void> {
    const [path] = map.below;
    if (path === undefined || path === "gone") return;
    await this.#done(["message"], map, ["0", "fail_path", path], "fail the path of the map", context);
  }

  async endQueueing(map: DeviceMap, context: CallContext): Promise<void> {
    const { name, uuid } = map;
    const there = this.#find(name);
    if (there?.uuid !== uuid || there.sizeBytes === 0n) return;
    this.#ended.add(uuid);
    await this.#done(["message"], map, ["0", "fail_if_no_path"], "end the queueing of the map", context);
    if (!(await this.table(map, context)).queues) return;
    throw new VolumeError("unavailable", `Cannot end the queueing of the map: map=${name}`);
  }

  async remove(map: DeviceMap, context: CallContext): Promise<void> {
    const { name, uuid } = map;
    if (this.#find(name)?.uuid !== uuid) return;
    const result = await this.#run(["remove", "--uuid", uuid], name, context);
    if (this.#find(name)?.uuid !== uuid) return void this.#ended.delete(uuid);
    throw new VolumeError(
      /busy/.test(result.stderr) ? "in-use" : "unavailable",
      `Cannot remove the map of the volume: map=${name}: ${complaint(result)}`,
    );
  }

  #find(name: string): DeviceMap | undefined {
    const isIt = (device: string) => mapNameOf(this.#files, device) === name;
    const known = this.#seen.get(name);
    const device = known !== undefined && isIt(known) ? known : mapDevices(this.#files).find(isIt);
    if (device === undefined) {
      this.#seen.delete(name);
      return undefined;
    }
    this.#seen.set(name, device);
    return readMap(this.#files, device);
  }

  #assertSame(there: DeviceMap | undefined, { name, uuid }: MapIdentity): void {
    if (there?.uuid === uuid) return;
    throw new VolumeError(
      "identity-mismatch",
      `Cannot use the map because it is not the volume's: map=${name} expected uuid=${uuid} ` +
        `found ${there?.uuid ?? "no map"}`,
    );
  }

  /**
   * Throws if the map has grown since its size was read: the file system would lose its data beyond the smaller end.
   */
  async #assertNotLarger(map: MapIdentity, sizeBytes: bigint, context: CallContext): Promise<void> {
    const { name } = map;
    const there = this.#find(name);
    if (there === undefined || there.sizeBytes <= sizeBytes) return;
    await this.#done(["clear"], map, [], "reload the map", context);
    throw new VolumeError(
      "unavailable",
      `Cannot reload the map because it has grown meanwhile: map=${name} size=${there.sizeBytes} wanted=${sizeBytes}`,
    );
  }

  /** Waits until the kernel shows the result. */
  async #readBack(
    identity: MapIdentity,
    { deviceNumber }: ProvenDevice,
    sizeBytes: bigint,
    context: CallContext,
  ): Promise<DeviceMap> {
    const map = this.#find(identity.name);
    this.#assertSame(map, identity);
    const { stdout } = await this.#done(["table"], identity, [], "read the map", context);
    if (isTable(stdout, sizeBytes, deviceNumber) && map!.on === deviceNumber) return map!;
    throw new VolumeError(
      "unavailable",
      "Cannot use the map because it is not as it was made: " +
        `map=${identity.name} wanted=${formatTable(sizeBytes, deviceNumber)} found=${stdout.trim()} ` +
        `below=${map!.below.join()} suspended=${map!.suspended}`,
    );
  }

  /** Runs a command on the map of that UUID: its name could belong to another map by now. */
  async #done(
    command: readonly string[],
    { name, uuid }: MapIdentity,
    args: readonly string[],
    what: string,
    context: CallContext,
  ): Promise<ToolResult> {
    const result = await this.#run([...command, "--uuid", uuid, ...args], name, context);
    if (result.code === 0) return result;
    throw new VolumeError("unavailable", `Cannot ${what}: map=${name}: ${complaint(result)}`);
  }

  #run(args: readonly string[], name: string, context: CallContext): Promise<ToolResult> {
    // A command that hangs on a map must not block other commands on it.
    const subject = `${name} to ${args[0]}`;
    return this.#processes.run("dmsetup", { args, subject, signal: context.signal, timeoutMs: changeMs });
  }
}

function endedMeanwhile({ name }: MapIdentity): VolumeError {
  return new VolumeError(
    "unavailable",
    `Cannot let the map wait again because its queueing was ended: map=${name}`,
  );
}
