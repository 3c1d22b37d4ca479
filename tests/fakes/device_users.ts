import type { DeviceUser } from "../../src/volume/model/host/device_user.ts";
import type { BlockDevices, DeviceNode, MountEntry } from "../../src/volume/ports/node_ports.ts";
import { type FakeDevice, isFrozen } from "./node_device.ts";

/** A process that has the device open, or may have. */
export interface FakeHolder {
  readonly certain: boolean;
  /** Such as `process 7 (dd)`. */
  readonly description: string;
}

/** The kernel's part of the users. */
type UserPorts = Pick<
  BlockDevices,
  "partitions" | "layers" | "openBy" | "hiddenUsers" | "hasFilesystem" | "isUnclaimed"
>;

/** Everybody on a fake node who uses the volume's device, besides the driver's own mounts. */
export class FakeDeviceUsers {
  holder: FakeHolder | undefined;
  /** Whether something has the device exclusively that no search finds. */
  claimed = false;
  /** Devices that the node's kernel has made on top of the volume's device, such as `/dev/md127 (raid1)`. */
  layers: readonly string[] = [];
  /** The path of the only device that has those. @default {every device} */
  layersOn: string | undefined;
  partitions: readonly DeviceNode[] = [];
  /** Paths of devices and partitions to which the node swaps. */
  swaps: readonly string[] = [];
  /** Mounts of the volume's device in other mount namespaces. */
  namespaces: readonly { readonly at: string; readonly pid: number; readonly name: string }[] = [];
  /** Mount namespaces that no search looks into. */
  hidden: readonly string[] = [];
  /** How often every process of the host was searched for a user that is not shown. */
  hiddenSearches = 0;

  protected userPorts(
    devices: ReadonlyMap<string, FakeDevice>,
    table: () => readonly MountEntry[],
    hasMap: (deviceNumber: string) => boolean,
  ): UserPorts {
    const isMounted = (numbers: readonly string[]) =>
      table().some(({ deviceNumber }) => numbers.includes(deviceNumber));
    const numbersOf = (
      { deviceNumber }: DeviceNode,
    ) => [deviceNumber, ...this.partitions.map((partition) => partition.deviceNumber)];
    return {
      partitions: () => Promise.resolve(this.partitions),
      layers: ([node, ...partitions]) => Promise.resolve(this.#layersOn([node!, ...partitions])),
      openBy: ([node]) => Promise.resolve(this.#openBy(node!)),
      hiddenUsers: ([node]) => {
        this.hiddenSearches++;
        const device = node!.path;
        const elsewhere = this.namespaces.map(({ at, pid, name }): DeviceUser => ({
          device,
          by: "namespace",
          at,
          process: { pid, name, pod: undefined },
        }));
        const lives = isFrozen(devices, node!.deviceNumber) && !isMounted([node!.deviceNumber]);
        const superblock: DeviceUser[] = lives && elsewhere.length === 0
          ? [{ device, by: "superblock", filesystem: "ext4", hidden: this.hidden }]
          : [];
        return Promise.resolve({ users: [...elsewhere, ...superblock], searched: "2 mount namespaces" });
      },
      hasFilesystem: ({ deviceNumber }) => Promise.resolve(isFrozen(devices, deviceNumber)),
      isUnclaimed: (device) =>
        Promise.resolve(
          !this.claimed && !isFrozen(devices, device.deviceNumber) && this.namespaces.length === 0 &&
            this.swaps.length === 0 && !isMounted(numbersOf(device)) && !hasMap(device.deviceNumber),
        ),
    };
  }

  #layersOn(nodes: readonly DeviceNode[]): readonly DeviceUser[] {
    const isOn = this.layersOn === undefined || nodes.some(({ path }) => path === this.layersOn);
    const layers = (isOn ? this.layers : []).map((text): DeviceUser => {
      const [layer, words = ""] = text.replace(/\)$/, "").split(" (");
      const names = words.split(", ").filter((word) => word !== "");
      return { device: nodes[0]!.path, by: "layer", layer: layer!, words: names };
    });
    const swaps = nodes.filter(({ path }) => this.swaps.includes(path));
    return [...layers, ...swaps.map(({ path }): DeviceUser => ({ device: path, by: "swap" }))];
  }

  #openBy({ path: device }: DeviceNode): readonly DeviceUser[] {
    if (this.holder === undefined) return [];
    const { certain, description } = this.holder;
    if (!certain) return [{ device, by: "unseen", what: description }];
    const [, pid, name] = /process ([0-9]+) \((.*)\)/.exec(description) ?? ["", "7", description];
    return [{ device, by: "process", process: { pid: Number(pid), name: name!, pod: undefined } }];
  }
}
