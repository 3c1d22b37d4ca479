import { idle } from "../../../cluster/kit/objects.ts";
import { until } from "../../../cluster/kit/waiting.ts";
import type { Workload } from "../../../cluster/kit/workload.ts";

/** What a pod writes to, by the names of its volumes: files of file systems, and devices. */
type Targets = Readonly<Record<string, string>>;

/** How far a pod has come with one of its volumes. */
export interface Progress {
  readonly volume: string;
  /** How often the volume was written, by whichever pod. */
  readonly writes: number;
  /** What this pod found when it began. */
  readonly found: number;
  /** How long the slowest write took until it was read back, in milliseconds: since this pod was to forget others. */
  readonly longestMs: number;
}

/**
 * The script of a pod that writes to each target how often it has done so, lets the write become durable, and reads it back
 * past the cache. A write that fails, or that is read back as something else, is the last; the pod stays to tell.
 */
export function writingTo(targets: Targets): string {
  return `
read_back() { dd if=$1 bs=4096 count=1 iflag=direct 2>/dev/null | tr -d '\\000' | head -n 1; }
write() {
  n=$(read_back $2)
  n=\${n:-0}
  found=$n
  longest=0
  while :; do
    if [ -e /tmp/forget-$1 ]; then rm /tmp/forget-$1; longest=0; fi
    read -r began _ </proc/uptime
    n=$((n + 1))
    echo $n | dd of=$2 bs=4096 conv=notrunc,fsync,sync 2>/tmp/error-$1 || break
    [ "$(read_back $2)" = $n ] || break
    read -r ended _ </proc/uptime
    took=$((\${ended%.*}\${ended#*.} - \${began%.*}\${began#*.}))
    [ $took -le $longest ] || longest=$took
    echo $n $found $longest >/tmp/new-$1
    mv /tmp/new-$1 /tmp/progress-$1
    sleep 2
  done
  echo "$1: write $n: $(tr '\\n' ' ' </tmp/error-$1)" >>/tmp/failed
}
${Object.entries(targets).map((words) => `write ${words.join(" ")} &`).join("\n")}
wait
${idle}`;
}

/** A script that prints in lines how far such a pod has come with each volume, and then what has failed. */
function progressScript(targets: Targets): string {
  return `for volume in ${Object.keys(targets).join(" ")}; do
  cat /tmp/progress-$volume 2>/dev/null || echo 0 0 0
done
cat /tmp/failed 2>/dev/null || :`;
}

/** Reads what {@linkcode progressScript} prints: how far the pod has come, and a line for each volume that fails. */
function parseProgress(
  targets: Targets,
  text: string,
): { readonly progress: readonly Progress[]; readonly failures: readonly string[] } {
  const lines = text.split("\n");
  const volumes = Object.keys(targets);
  const progress = volumes.map((volume, index) => {
    const [writes = NaN, found = NaN, hundredths = NaN] = (lines[index] ?? "").split(" ").map(Number);
    return { volume, writes, found, longestMs: hundredths * 10 };
  });
  return { progress, failures: lines.slice(volumes.length) };
}

/** The slowest write of all, in milliseconds. */
export function slowestMs(progress: readonly Progress[]): number {
  return Math.max(...progress.map(({ longestMs }) => longestMs));
}

/** How far a pod has come, for people. */
export function progressText(progress: readonly Progress[]): string {
  const counts = progress.map(({ volume, writes }) => `${volume} ${writes}`).join(", ");
  return `writes: ${counts}, the slowest in ${(slowestMs(progress) / 1000).toFixed(1)} s`;
}

/** Longest until a pod has written once more, in seconds. */
const progressSeconds = 180;

/** A pod that writes. */
export class WritingPod {
  readonly name: string;
  readonly #targets: Targets;
  readonly #work: Workload;
  readonly #signal: AbortSignal;

  constructor(name: string, targets: Targets, work: Workload, signal: AbortSignal) {
    this.name = name;
    this.#targets = targets;
    this.#work = work;
    this.#signal = signal;
  }

  /** Runs a script in it, and answers what that printed. */
  exec(script: string): Promise<string> {
    return this.#work.exec(this.name, script);
  }

  /** Lets it forget how long its writes have taken so far. */
  async forget(): Promise<void> {
    await this.exec(
      `cd /tmp; touch ${Object.keys(this.#targets).map((volume) => `forget-${volume}`).join(" ")}`,
    );
    await this.progress();
  }

  /** How far it has come, with each volume further than when it was first asked. @throws {Error} when a write has failed */
  async progress(): Promise<readonly Progress[]> {
    const first = await this.#read();
    return await until(`${this.name} to write on`, async () => {
      const { progress, failures } = await this.#read();
      if (failures.length > 0) throw new Error(`writes have failed: ${failures.join("; ")}`);
      return progress.every(({ writes }, index) => writes > first.progress[index]!.writes) && progress;
    }, {
      limitSeconds: progressSeconds,
      everyMs: 500,
      signal: this.#signal,
      state: async () => progressText((await this.#read()).progress),
    });
  }

  /** Waits until a write to each volume has failed. */
  async failed(): Promise<void> {
    await until(`each write of ${this.name} to fail`, async () => {
      return (await this.#read()).failures.length === Object.keys(this.#targets).length;
    }, {
      limitSeconds: progressSeconds,
      everyMs: 500,
      signal: this.#signal,
      state: async () => JSON.stringify(await this.#read()),
    });
  }

  async #read() {
    return parseProgress(this.#targets, await this.exec(progressScript(this.#targets)));
  }
}
