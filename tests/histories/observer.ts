import { isLegacyId } from "../../src/volume/model/ids/ids.ts";
import { filePrefixOf } from "../../src/volume/model/image_names.ts";
import { parseComment } from "../../src/volume/model/record.ts";
import { platesFolder } from "../../src/volume/model/name_plates.ts";
import { volumeIdFor } from "../../src/volume/model/ids/ids.ts";
import { snapshotIdFor } from "../../src/volume/model/snapshots/snapshots.ts";
import { gibibyte } from "../fakes/controller_deps.ts";
import { aDisk, aRecord, testBase, testCluster } from "../fakes/records.ts";
import type { StoredVolume } from "../../src/volume/model/inventory.ts";
import type { FakeVolumeStore } from "../fakes/volume_store.ts";
import type { HistoryEvent } from "./events.ts";
import type { HistoryNode } from "./node.ts";
import type { RouterImages } from "./router_images.ts";
import { snapshotNames, volumeNames } from "./schedule.ts";

/** A volume that was there before. */
export interface Origin {
  /** Its image; undefined for one that the driver makes. */
  readonly path?: string | undefined;
  /** Whether the image belongs to a person, so that nothing may remove it. */
  readonly isPersons?: boolean;
}

/** Records the changes on the router and in the nodes' kernels since the last check. */
export class Observer {
  readonly #store: FakeVolumeStore;
  readonly #images: RouterImages;
  readonly #volumeIds: readonly string[];
  readonly #snapshotIds: readonly string[];
  readonly #record: (event: HistoryEvent) => void;
  /** Files of other owners, which exist from the start. */
  readonly #others: readonly string[];
  /** Their disks. */
  readonly #othersDisks: ReadonlyMap<string, StoredVolume>;
  readonly #origin: Origin;
  readonly #last = new Map<string, HistoryEvent>();

  constructor(
    store: FakeVolumeStore,
    images: RouterImages,
    volumeIds: readonly string[],
    snapshotIds: readonly string[],
    record: (event: HistoryEvent) => void,
    origin: Origin = {},
  ) {
    this.#store = store;
    this.#images = images;
    this.#volumeIds = volumeIds;
    this.#snapshotIds = snapshotIds;
    this.#record = record;
    this.#origin = origin;
    this.#others = [...store.allFiles.keys()].filter((path) =>
      path !== testBase && (path !== origin.path || origin.isPersons)
    );
    this.#othersDisks = new Map(store.disks.entries().filter(([id]) => !volumeIds.includes(id)));
  }

  observe(nodes: readonly HistoryNode[]): void {
    for (const of of this.#volumeIds) this.#note(of, this.#volume(of));
    for (const of of this.#snapshotIds) this.#note(of, this.#snapshot(of));
    for (const node of nodes) {
      for (const of of this.#volumeIds) {
        this.#note(`${node.name} ${of}`, { kind: "kernel", node: node.name, of, ...node.state(of) });
      }
    }
    for (const of of this.#others) {
      if (!this.#store.allFiles.has(of) && !this.#store.tree.isAside(of)) {
        this.#note(of, { kind: "others-lost", of });
      }
    }
    for (const [id, { comment, exported }] of this.#othersDisks) {
      const now = this.#store.disks.get(id);
      const isSame = now === undefined || now.comment === comment && now.exported === exported;
      if (!isSame) this.#note(id, { kind: "others-lost", of: id });
    }
    for (const line of this.#store.violations.splice(0)) this.#record({ kind: "router", line });
  }

  /** Returns the existing volumes and files of this cluster. */
  left(): string[] {
    // The name plates go rounds later.
    const plates = `${testBase}/${platesFolder(testCluster)}`;
    const doubtful = this.#store.disks.values().filter((disk) => this.#isLeftToPerson(disk))
      .map(({ id }) => id).toArray();
    const files = this.#store.allFiles.keys().filter((path) =>
      path !== testBase && !this.#others.includes(path) && !path.startsWith(plates) &&
      !doubtful.some((id) => path.includes(filePrefixOf(id, testCluster)))
    );
    const disks = this.#store.disks.values().filter(({ id, imagePath, exported }) =>
      this.#volumeIds.includes(id) && !doubtful.includes(id) &&
      (exported || !this.#others.includes(imagePath))
    );
    return [...disks.map(({ id }) => id), ...files];
  }

  /**
   * Whether nobody but a person may remove it: a disk of the legacy driver that came back without its image, or one of whose record
   * the router has kept the beginning.
   */
  #isLeftToPerson({ id, imagePath, comment }: StoredVolume): boolean {
    const isCut = this.#store.maxComment < Infinity && parseComment(comment).state === "damaged";
    return isCut || isLegacyId(id) && !this.#store.allFiles.has(imagePath);
  }

  /** Whether that volume or snapshot has an image. */
  hasImage(of: string): boolean {
    return this.#pathOf(of) !== undefined;
  }

  #note(key: string, event: HistoryEvent): void {
    const last = this.#last.get(key);
    if (last !== undefined && isSame(last, event)) return;
    this.#last.set(key, event);
    this.#record(event);
  }

  #volume(of: string): HistoryEvent {
    const disk = this.#store.disks.get(of);
    const there = this.#imageOf(of, disk);
    // By a person's hand the disk may be on another file: the volume's data is where it was.
    const isElsewhere = disk !== undefined && disk.imagePath !== there;
    const path = there;
    const shown = disk ?? this.#store.disks.values().find(({ imagePath }) => imagePath === path);
    const isHidden = shown !== undefined && this.#store.hidden.has(shown.id);
    const isWhole = disk !== undefined && this.#store.allFiles.has(disk.imagePath);
    return {
      kind: "image",
      of,
      bytes: isWhole ? disk.sizeBytes : undefined,
      exists: disk !== undefined || path !== undefined,
      hidden: isHidden || this.#store.hidden.has(of) || shown !== disk,
      elsewhere: isElsewhere,
      value: this.#valueAt(path ?? disk?.imagePath),
      exported: shown?.exported === true && !isHidden ? shown.exportNqn : undefined,
      open: path === undefined ? [] : this.#images.open(path),
    };
  }

  /** The data of an image, also of one that is put aside. */
  #valueAt(path = ""): string | undefined {
    const { tree, allFiles } = this.#store;
    return allFiles.has(path) ? tree.contents.get(path) : tree.contentAside(path);
  }

  #imageOf(of: string, disk: StoredVolume | undefined): string | undefined {
    const { path } = this.#origin;
    if (path !== undefined && of === this.#volumeIds[0]) {
      return this.#store.allFiles.has(path) ? path : undefined;
    }
    const part = filePrefixOf(of, testCluster);
    return disk?.imagePath.includes(part) && isOwn(disk.imagePath) ? disk.imagePath : this.#pathOf(part);
  }

  #snapshot(of: string): HistoryEvent {
    const path = this.#pathOf(of);
    return {
      kind: "image",
      of,
      bytes: path === undefined ? undefined : this.#store.allFiles.get(path)!.sizeBytes,
      exists: this.#store.allFiles.keys().some((path) => path.includes(of) && isOwn(path)),
      value: path === undefined ? undefined : this.#store.tree.contents.get(path),
      exported: undefined,
      open: [],
    };
  }

  /** Returns the path of this cluster's image that contains that text. */
  #pathOf(part: string): string | undefined {
    for (const path of this.#store.allFiles.keys()) {
      if (path.includes(part) && path.endsWith(".img") && isOwn(path)) return path;
    }
    return undefined;
  }
}

/** Whether two events of one kind tell the same. It is asked after every step of everything. */
function isSame(one: HistoryEvent, other: HistoryEvent): boolean {
  for (const name in other) {
    const [before, value]: unknown[] = [one[name as keyof HistoryEvent], other[name as keyof HistoryEvent]];
    if (before === value) continue;
    if (!Array.isArray(before) || !Array.isArray(value) || before.length !== value.length) return false;
    if (!value.every((item, index) => item === before[index])) return false;
  }
  return true;
}

function isOwn(path: string): boolean {
  return path.startsWith(`${testBase}/`) && path.includes(`.${testCluster}`);
}

const otherCluster = "ffffffff";

/**
 * Puts another cluster's volumes and snapshots of the same names on the router, and a copy of one of this cluster's into a
 * folder that it may not use: nothing may ever happen to them.
 */
export function putOthers(store: FakeVolumeStore): void {
  for (const name of volumeNames) {
    const path = `${testBase}/${volumeIdFor(name)}.${otherCluster}.img`;
    store.put(aDisk(aRecord({ cluster: otherCluster }), { id: `other-${name}`, imagePath: path }));
  }
  for (const name of snapshotNames) {
    store.putFile(
      `${testBase}/${snapshotIdFor(name, otherCluster)}.${
        volumeIdFor(volumeNames[0]!)
      }.1.n.${otherCluster}.img`,
      gibibyte,
    );
  }
  const snapshot = snapshotIdFor(snapshotNames[0]!, testCluster);
  store.putFile(`/pool/backup/${snapshot}.${volumeIdFor(volumeNames[0]!)}.1.n.${testCluster}.img`, gibibyte);
}
