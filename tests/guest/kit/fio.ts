// fio(1) in a guest: measures the speed of a file or a device.
import { join } from "node:path";
import { findProgram, hostOutput } from "./host_command.ts";
import type { Guest } from "./guest.ts";

/** fio's folder in the guest, with its libraries: they would double every guest's image. */
const folder = "/tmp/fio";

/** The measured workloads: the two extremes of volumes' uses. */
export const workloads = {
  "4k random read": { rw: "randread", bs: "4k" },
  "4k random write": { rw: "randwrite", bs: "4k" },
  "1M sequential read": { rw: "read", bs: "1M" },
  "1M sequential write": { rw: "write", bs: "1M" },
} as const;
export type Workload = keyof typeof workloads;

/** Bytes per second of each workload. */
export type Speeds = Readonly<Record<Workload, number>>;

/** MiB of the file or device that are used. */
const sizeMiB = 128;
/** The duration of a workload: first uncounted, then counted. */
const [warmUpSeconds, seconds] = [0.2, 1];
/** How long all workloads may take before fio is killed. */
const limitSeconds = 40;

/** Whether this machine has fio. */
export function fioIsHere(): boolean {
  return findProgram("fio") !== undefined;
}

/** Copies this machine's fio into a guest. */
export async function installFio(guest: Guest): Promise<void> {
  const program = findProgram("fio");
  if (program === undefined) throw new Error("fio is not here; make test/packages installs it");
  const shared = join(guest.folder, "host/fio");
  await Deno.mkdir(shared);
  const libraries = [...(await hostOutput("ldd", [program])).matchAll(/(\/\S+) \(0x/g)].map(([, path]) =>
    path!
  );
  for (const path of [program, ...libraries]) {
    await Deno.copyFile(path, join(shared, path.slice(path.lastIndexOf("/") + 1)));
  }
  await guest.sh(`cp -r /host/fio ${folder}`, { limitSeconds: 120 });
}

/** Writes the measured part once, so that every block of it is allocated. */
export async function fill(guest: Guest, path: string): Promise<void> {
  await guest.sh(
    `dd if=/dev/zero of="$path" bs=1M count=${sizeMiB} oflag=direct conv=notrunc,fsync status=none`,
    {
      env: { path },
      limitSeconds: 120,
    },
  );
}

/** Runs all workloads on a filled file or device, one after the other, past the guest's cache. */
export async function measureSpeeds(guest: Guest, path: string): Promise<Speeds> {
  const jobs = Object.entries(workloads).map(([name, { rw, bs }]) =>
    `[${name}]\nstonewall\nrw=${rw}\nbs=${bs}\n`
  );
  const job = [
    `[global]\nfilename=${path}\nsize=${sizeMiB}M\ndirect=1\nioengine=libaio\niodepth=16\n`,
    `runtime=${seconds}\nramp_time=${warmUpSeconds}\ntime_based=1\nrandseed=1\nallow_file_create=0\n`,
    ...jobs,
  ].join("");
  await guest.write(`${folder}/jobs`, job);
  const printed = await guest.sh(
    `LD_LIBRARY_PATH=${folder} timeout -k 5 ${limitSeconds} ${folder}/fio --output-format=json ${folder}/jobs`,
    { limitSeconds: limitSeconds + 10 },
  );
  const report = JSON.parse(printed.slice(printed.indexOf("{"))) as FioReport;
  const speeds = report.jobs.map(({ jobname, error, read, write }) => {
    const bytes = Math.max(read.bw_bytes, write.bw_bytes);
    if (error !== 0 || bytes === 0) {
      throw new Error(`fio failed: job=${jobname} error=${error} bytes=${bytes}`);
    }
    return [jobname, bytes] as const;
  });
  return Object.fromEntries(speeds) as Speeds;
}

/** The used fields of `fio --output-format=json`. */
interface FioReport {
  readonly jobs: readonly {
    readonly jobname: string;
    readonly error: number;
    readonly read: { readonly bw_bytes: number };
    readonly write: { readonly bw_bytes: number };
  }[];
}
