// How long an answer of ListVolumes takes beside the SSH time: from the router's reply to the bytes of the response.
import { unheard } from "../../src/volume/ports/event_listener.ts";
import type { ControllerDeps } from "../../src/controller/deps.ts";
import { controllerMethods } from "../../src/csi/services/controller.ts";
import { Routers } from "../../src/csi/services/routers/routers.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { systemRandom } from "../../src/host/random.ts";
import { Session } from "../../src/routeros/ssh/session.ts";
import { RouterVolumeStore } from "../../src/routeros/store/volume_store.ts";
import { VolumeIdPrefix } from "../../src/volume/model/ids/handles.ts";
import type { VolumeRecord } from "../../src/volume/model/record.ts";
import { fakeCall } from "../fakes/contexts.ts";
import { testController } from "../fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../fakes/records.ts";
import { answering, FakeSshTransport } from "../fakes/ssh_transport.ts";

/** Listings that are not counted, as they pay for the compiler: a controller lists every minute, for months. */
const warmUps = 60;

/** Of so many series the fastest is told: what else runs on the machine makes one only slower. */
const series = 3;

/** Milliseconds of one listing, of as many as were made. */
export interface ListMeasurements {
  readonly disks: number;
  readonly medianMs: number;
  readonly worstMs: number;
  readonly responseBytes: number;
  /** What the runtime alone takes to parse the same answer of the router, in the same series. */
  readonly parseMs: number;
}

function onlyRouter(deps: ControllerDeps): Routers {
  return new Routers([{ name: "", ids: VolumeIdPrefix.none, isDefault: true, topology: {}, deps }]);
}

/** Lists a router of so many published volumes, again and again; the SSH connection costs nothing. */
export async function measureList(disks: number, times: number): Promise<ListMeasurements> {
  const store = storeOf(disks);
  const methods = controllerMethods(onlyRouter(depsOf(store)));
  const serialize = loadCsi().Controller.service.ListVolumes.responseSerialize;
  const request = { startingToken: "", maxEntries: 0 };
  let responseBytes = 0;
  const list = async () => {
    const startedMs = performance.now();
    const response = await methods.ListVolumes!.handler(request, fakeCall(systemClock));
    responseBytes = serialize(response).length;
    return performance.now() - startedMs;
  };
  for (let time = 0; time < warmUps; time++) await list();
  const rows = rowsOf(disks);
  const measured: { medianMs: number; worstMs: number; parseMs: number }[] = [];
  for (let one = 0; one < series; one++) {
    const [spans, parses]: [number[], number[]] = [[], []];
    for (let time = 0; time < times; time++) {
      spans.push(await list());
      const startedMs = performance.now();
      JSON.parse(rows);
      parses.push(performance.now() - startedMs);
    }
    const [ordered, orderedParses] = [spans, parses].map((all) => all.toSorted((a, b) => a - b)) as [
      number[],
      number[],
    ];
    measured.push({
      medianMs: ordered[times >> 1]!,
      worstMs: ordered.at(-1)!,
      parseMs: orderedParses[times >> 1]!,
    });
  }
  store.close();
  const fastest = measured.toSorted((a, b) => a.medianMs - b.medianMs)[0]!;
  return { disks, ...fastest, responseBytes };
}

function rowsOf(disks: number): string {
  return JSON.stringify([poolRow, ...Array.from({ length: disks }, (_, index) => diskRow(index))]);
}

function storeOf(disks: number): RouterVolumeStore {
  const rows = rowsOf(disks);
  const resource = JSON.stringify([{ uptime: "1w", version: "7.24 (stable)" }]);
  const transport = new FakeSshTransport(answering((query) => query.startsWith("/disk") ? rows : resource));
  const parts = { clock: systemClock, random: systemRandom };
  return new RouterVolumeStore({ ...parts, session: new Session({ ...parts, transport }) });
}

const poolRow = {
  slot: "pool",
  type: "raid",
  size: 7681574174720,
  free: 7301927047168,
  mounted: true,
  "mount-point": "pool",
  fs: "btrfs",
  "fs-label": "pool-fs",
  state: "clean",
};

function diskRow(index: number) {
  const record: Partial<VolumeRecord> = {
    epoch: { counter: 3, nonce: "0a0b0c0d" },
    holders: [aHolder(`worker-${index % 16}.example.net`)],
  };
  const disk = aDisk(aRecord(record), { id: `pvc-${index.toString(16).padStart(28, "0")}` });
  return {
    slot: disk.id,
    type: "file",
    size: Number(disk.sizeBytes),
    "file-path": disk.imagePath,
    comment: disk.comment,
    "nvme-tcp-export": true,
    "nvme-tcp-server-port": 4420,
    "nvme-tcp-server-nqn": disk.exportNqn,
    mounted: false,
    fs: "-",
  };
}

function depsOf(store: RouterVolumeStore): ControllerDeps {
  return {
    ...testController().deps,
    store,
    clock: systemClock,
    random: systemRandom,
    events: unheard,
    notes: { warn: (message) => unexpected(message) },
  };
}

function unexpected(message: string): never {
  throw new Error(`the listing was to go without a word: ${message}`);
}
