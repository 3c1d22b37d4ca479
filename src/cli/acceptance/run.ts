import { probeRouter } from "../../doctor/probe/probe.ts";
import { captureDisk, findOwn, type Ground, readGround, refuseGround } from "../../doctor/probe/ground.ts";
import type { HostSide } from "../../doctor/probe/question.ts";
import { ProbeSession, type ProbeSessionLimits } from "../../doctor/probe/session.ts";
import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { hidden, publicBoard, publicVersion, standIn } from "../../router_profile/report/allowed.ts";
import { summariseTimes } from "../../router_profile/report/command_times.ts";
import { Recording } from "../../router_profile/report/recorded.ts";
import type { AcceptanceReport, ReportedStep } from "../../router_profile/report/report.ts";
import { formatProfile, type RouterProfile } from "../../router_profile/profile.ts";
import { Transcript } from "../../routeros/ssh/transcript.ts";
import type { SshTransport } from "../../routeros/ssh/transport.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { Finding } from "../../volume/model/finding.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import { maxNqnTailBytes } from "../config/flag_tables.ts";
import { version } from "../build_version.ts";
import { fenceGroup } from "./fences.ts";
import { healthStep } from "./health.ts";
import { lifeGroup } from "./life.ts";
import {
  clusterId,
  type LifeKind,
  lifeKinds,
  nodeId,
  nqnPrefix,
  otherNodeId,
  ownMarks,
  snapshotIds,
  volumeIds,
} from "./names.ts";
import type { AcceptanceOptions } from "./options.ts";
import { rebootGroup } from "./reboot.ts";
import { type RunConnector, type RunDriver, startRunDriver } from "./stack.ts";
import { assertHolds, NotHere, runGroup, type Step, type StepGroup, type StepRunner } from "./step.ts";

/** What a run uses of this machine and the router. */
export interface RunAdapters {
  readonly clock: Clock;
  readonly random: Random;
  readonly transport: SshTransport;
  readonly host: HostSide;
  readonly connector: RunConnector;
  /** A folder of the run's own on this machine. */
  readonly folder: string;
  readonly signal: AbortSignal;
  /** Finds out how the router behaves. @default {probeRouter} */
  readonly probe?: typeof probeRouter;
  /** The kinds of volumes that go through life. @default {all} */
  readonly kinds?: readonly LifeKind[];
  /** How long a router is waited for. @default {those of a probe} */
  readonly limits?: ProbeSessionLimits;
  /** How long a call of the driver may take, in milliseconds. @default {twice what a kubelet waits} */
  readonly callMs?: number;
  /** What the doctor finds on the router. */
  doctor(): Promise<readonly Finding[]>;
  /** Why this machine cannot grow a mounted file system of the kind; undefined when it can. */
  cannotGrow(kind: string): string | undefined;
  /** Unmounts and disconnects what the run has left on this machine; returns what stays. */
  releaseHere(): Promise<readonly string[]>;
  /** What the run has left on this machine, for people. */
  leftHere(): Promise<readonly string[]>;
  /** Ends the kernel's connection to an export. */
  disconnect(nqn: string): Promise<void>;
  readText(path: string): Promise<string>;
  /** Asks a person; resolves with the line that was typed. */
  ask(question: string): Promise<string>;
  /** Tells a person what goes on. */
  say(text: string): void;
  /** Called with each result as it comes; `error` as it was, which the report does not hold. */
  reported(row: ReportedStep, error: unknown): void;
}

/** Long, as nobody repeats a call. */
const defaultCallMs = 240_000;

/** What a run gives. */
export interface RunResult {
  readonly report: AcceptanceReport;
  /** Texts as `/disk print detail` and refusals printed them, by the name of the file. */
  readonly captures: Readonly<Record<string, string>>;
  readonly recording: Recording;
  /** The owner's names that the run had to use. */
  readonly names: readonly string[];
}

/** One run on one router. */
export class AcceptanceRun {
  readonly #options: AcceptanceOptions;
  readonly #adapters: RunAdapters;
  readonly #steps: ReportedStep[] = [];
  #profile: RouterProfile | undefined;
  #unanswered: Readonly<Record<string, string>> = {};
  #capture = "";

  constructor(options: AcceptanceOptions, adapters: RunAdapters) {
    this.#options = options;
    this.#adapters = adapters;
  }

  /**
   * Looks at the router, asks a person, takes volumes through everything, and removes them.
   *
   * @throws {VolumeError} precondition when it may not run there: nothing was changed; cancelled when it was stopped
   */
  async run(): Promise<RunResult> {
    const findings = await this.#adapters.doctor();
    const ground = await this.#survey(findings);
    await this.#confirm(ground);
    const pool = ground.pool!;
    const names = {
      slot: pool.slot,
      mountPoint: pool.mountPoint,
      label: pool.label,
      basePath: this.#options.basePath,
    };
    const recording = new Recording({ ...ownMarks, ...names });
    const transcript = new Transcript(this.#adapters.clock, recording);
    const runner = this.#runner(transcript, recording);
    await this.#cleanUpEarlier(ground);
    for (const group of this.#checks(findings, transcript)) await runGroup(group, runner);
    try {
      await this.#runGroups(transcript, runner);
    } finally {
      await this.#removeRest();
    }
    await runGroup(this.#listing(transcript), runner);
    const { filesystem, sizeBytes } = pool;
    const profile = this.#profile && JSON.parse(formatProfile(this.#profile, this.#unanswered));
    const refusals = transcript.entries.flatMap((entry) =>
      "text" in entry ? entry.text.filter((line) => line !== hidden) : []
    );
    return {
      report: {
        driver: version,
        router: {
          version: publicVersion(ground.router.version),
          board: publicBoard(ground.router.board),
          poolFilesystem: filesystem === "btrfs" ? "btrfs" : "xfs",
          poolBytes: Number(sizeBytes),
        },
        steps: this.#steps,
        commands: summariseTimes(transcript.times),
        ...profile === undefined ? {} : { profile: this.#publicProfile(profile, recording) },
        own: ownMarks,
        transcript: transcript.entries,
      },
      captures: {
        ...this.#capture === "" ? {} : { "file-disk-detail.txt": recording.detail(this.#capture) },
        ...refusals.length === 0 ? {} : { "errors.txt": `${[...new Set(refusals)].join("\n")}\n` },
      },
      recording,
      names: [...Object.values(names), ...this.#options.basePath.split("/")],
    };
  }

  async #runGroups(transcript: Transcript, runner: StepRunner): Promise<void> {
    if (this.#profile?.answers.limits === "too-small") {
      // No controller starts on such a router.
      const group = notHere("volumes", "An answer is OK only when it is done", "its limits are too small");
      return await runGroup(group, runner);
    }
    await this.#withDriver((transport) => transcript.through(transport), async (driver) => {
      for (const group of this.#groups(driver, transcript)) await runGroup(group, runner);
    });
  }

  /** What a driver that failed has left is removed by another one, also after a stop. */
  async #removeRest(): Promise<void> {
    const { say, releaseHere } = this.#adapters;
    try {
      const ground = await this.#read(this.#adapters.transport, new AbortController().signal);
      if (findOwn(ground, this.#options.basePath, ownMarks).length === 0) return;
      say("removing what the steps left");
      for (const problem of await releaseHere()) say(problem);
      await this.#cleanUpEarlier(ground);
    } catch (error) {
      say(`while cleaning up: ${messageOf(error)}; the next run removes what is left`);
    }
  }

  /** The reasons why questions have no answer repeat what the router said. */
  #publicProfile(profile: Record<string, unknown>, recording: Recording) {
    const { unanswered, ...rest } = profile;
    const reasons = Object.entries(unanswered as Record<string, string>)
      .map(([question, reason]) => [question, recording.reason(reason)]);
    const { version, board } = {
      version: publicVersion(String(rest["version"])),
      board: String(rest["name"]),
    };
    const name = `${publicBoard(board)} ${version}`.trim();
    return { ...rest, name, version, unanswered: Object.fromEntries(reasons) } as
      & AcceptanceReport["profile"]
      & object;
  }

  #session(transport: SshTransport, signal = this.#adapters.signal): ProbeSession {
    const { clock, random, limits } = this.#adapters;
    return new ProbeSession({ transport, clock, random, signal, ...limits && { limits } });
  }

  async #read(transport = this.#adapters.transport, signal = this.#adapters.signal): Promise<Ground> {
    const line = this.#session(transport, signal);
    try {
      return await readGround(line, this.#options.basePath);
    } finally {
      line.close();
    }
  }

  async #survey(findings: readonly Finding[]): Promise<Ground> {
    const { basePath } = this.#options;
    // The version is judged with what the person has accepted.
    const problem = findings.find(({ check, state }) => state === "problem" && check !== "version");
    const ground = await this.#read().catch((error) => {
      // The doctor says why, and what to do.
      if (problem === undefined || !VolumeError.is(error, "unavailable")) throw error;
      return undefined;
    });
    const refusal = ground && refuseGround(ground, basePath, ownMarks, this.#options);
    if (ground !== undefined && refusal === undefined && problem === undefined) return ground;
    const reason = refusal ??
      `the doctor has a problem: ${problem?.check}: ${problem?.found}; ` +
        `${problem?.fix ?? "see rds-csi doctor"}`;
    throw new VolumeError(
      "precondition",
      `Cannot run in that folder because ${reason}: base-path=${basePath}`,
    );
  }

  async #confirm(ground: Ground): Promise<void> {
    const { basePath, reboot, yes } = this.#options;
    const { say, ask, signal } = this.#adapters;
    say(
      `makes up to 4 volumes of 2 GiB at a time in ${basePath}, writes to them, copies them, and removes them again`,
    );
    say("runs the probe there, which makes and removes scratch disks as rds-csi doctor --probe does");
    if (reboot) say("asks you to reboot the router");
    const left = findOwn(ground, basePath, ownMarks);
    if (left.length > 0) say(`first removes what an earlier run left: ${left.join(", ")}`);
    if (yes) return;
    const answer = await ask('Type "yes" to begin: ');
    signal.throwIfAborted();
    if (answer.trim() === "yes") return;
    throw new VolumeError("cancelled", "Nothing was done, because the answer was not yes");
  }

  #runner(transcript: Transcript, recording: Recording): StepRunner {
    const { clock, signal, say, reported } = this.#adapters;
    return {
      clock,
      signal,
      countCommands: () => transcript.sent,
      begin: (step) => {
        transcript.step = step;
        say(step);
      },
      report: (row, error) => {
        const note = error === undefined ? row.note : recording.reason(row.note);
        this.#steps.push({ ...row, note });
        reported(row, error);
      },
    };
  }

  /** The driver knows its own files, even one that a command which was cut off has left. */
  async #cleanUpEarlier(ground: Ground): Promise<void> {
    const { basePath } = this.#options;
    if (findOwn(ground, basePath, ownMarks).length === 0) return;
    await this.#withDriver((transport) => transport, async ({ clients: { controller } }) => {
      for (const volumeId of volumeIds) {
        for (const node of [nodeId, otherNodeId]) {
          // A volume that is not there is no error.
          await controller.call("ControllerUnpublishVolume", { volumeId, nodeId: node });
        }
        await controller.call("DeleteVolume", { volumeId });
      }
      for (const snapshotId of snapshotIds) await controller.call("DeleteSnapshot", { snapshotId });
    }, { kind: "none", reason: "it only removes" });
    const now = await this.#read(this.#adapters.transport, new AbortController().signal);
    const left = findOwn(now, basePath, ownMarks).filter((path) => !path.includes("/rds-csi-probe-"));
    if (left.length === 0) return;
    throw new VolumeError(
      "precondition",
      `Cannot remove what an earlier run left because the router keeps it: file=${left.join(", ")}; ` +
        "remove it by hand",
    );
  }

  async #withDriver(
    through: (transport: SshTransport) => SshTransport,
    work: (driver: RunDriver) => Promise<void>,
    connector = this.#adapters.connector,
  ): Promise<void> {
    const { clock, random, folder, readText, transport, callMs = defaultCallMs } = this.#adapters;
    const { router, basePath, nvmeAddress, nvmePort } = this.#options;
    await using driver = await startRunDriver({
      ...{ router, connector, nodeId, otherNodeId, folder, callMs, clock, random, readText },
      flags: [
        ...["--cluster-id", clusterId, "--nqn-prefix", nqnPrefix, "--base-path", basePath],
        ...["--nvme-address", nvmeAddress, "--nvme-port", String(nvmePort)],
        // Nothing goes on beside the steps, in whose order a replay gives their commands.
        ...["--audit-interval", "0s", "--health-interval", "0s"],
      ],
      profile: this.#profile,
      // Each connection is made by the transport of the run, whose credentials were read once.
      through: () => through(transport),
      sink: () => {},
    });
    await work(driver);
  }

  #checks(findings: readonly Finding[], transcript: Transcript): readonly StepGroup[] {
    const { transport, clock, random, host, signal, say, limits, probe: ask = probeRouter } = this.#adapters;
    const doctor: Step = {
      step: "doctor",
      promise: "What is wrong is found by the doctor, with the command that mends it",
      run: () => {
        const count = (state: Finding["state"]) =>
          findings.filter((finding) => finding.state === state).length;
        return Promise.resolve(`${count("ok")} ok, ${count("warning")} warnings`);
      },
    };
    const probe: Step = {
      step: "probe",
      promise: "A probe leaves nothing behind and lets no host in",
      run: async () => {
        const { profile, unanswered } = await ask({
          ...{ clock, random, host, signal, basePath: this.#options.basePath, ...limits && { limits } },
          transport: transcript.through(transport),
          nqnBytes: nqnPrefix.length + maxNqnTailBytes,
          say: (text) => say(`probe: ${text}`),
        });
        this.#profile = profile;
        this.#unanswered = unanswered;
        assertHolds(
          profile.answers.limits !== "too-small",
          "the router cuts off what the driver needs whole",
        );
        return Object.entries(profile.answers).map(([name, answer]) => `${name} ${answer}`).join(", ");
      },
    };
    const health = healthStep({ clock, random, signal, transport: transcript.through(transport) });
    return [{ steps: [doctor, probe] }, { steps: [health] }];
  }

  #groups({ clients }: RunDriver, transcript: Transcript): readonly StepGroup[] {
    const { clock, signal, host, folder, connector, say, disconnect, cannotGrow, transport } = this.#adapters;
    const { dataBytes, reboot } = this.#options;
    const user = { clients, nodeId, otherNodeId, directory: folder };
    const problem = (text: string) => say(`while cleaning up: ${text}`);
    const nodeMissing = connector.kind === "none" ? connector.reason : undefined;
    const lives = (this.#adapters.kinds ?? lifeKinds).map((kind) =>
      nodeMissing === undefined
        ? lifeGroup(kind, { user, dataBytes, cannotGrow: cannotGrow(kind), problem })
        : notHere(`${kind}: life`, "An answer is OK only when it is done", nodeMissing)
    );
    const capture = async (slot: string) => {
      const line = this.#session(transport);
      try {
        this.#capture = await captureDisk(line, slot);
      } finally {
        line.close();
      }
    };
    const byKernel = connector.kind === "nvme-tcp";
    const fences = fenceGroup({ user, clock, signal, host, byKernel, disconnect, capture, problem });
    const rebooting = rebootGroup({
      ...{ user, clock, signal, host, dataBytes, nodeMissing, problem },
      ask: async () => {
        await this.#adapters.ask("Reboot the router now, and press Enter: ");
      },
      uptimeMs: async () => (await this.#read()).uptimeMs,
      rebooted: () => transcript.rebooted(),
      identity: (bootIdentity) => this.#learn(bootIdentity),
    });
    return [...lives, fences, ...reboot ? [rebooting] : []];
  }

  /** Only a reboot answers this question of a probe. */
  #learn(bootIdentity: RouterBehaviours["bootIdentity"]): void {
    if (this.#profile === undefined) return;
    this.#profile = { ...this.#profile, answers: { ...this.#profile.answers, bootIdentity } };
    const { bootIdentity: _, ...unanswered } = this.#unanswered;
    this.#unanswered = unanswered;
  }

  /** Shown by listing, over a connection of its own. */
  #listing(transcript: Transcript): StepGroup {
    const step: Step = {
      step: "nothing left",
      promise: "Everything ends and leaves nothing",
      run: async () => {
        const ground = await this.#read(transcript.through(this.#adapters.transport));
        const left = [...findOwn(ground, this.#options.basePath, ownMarks), ...ground.contents];
        assertHolds(left.length === 0, `${new Set(left).size} files are left on the router`);
        const here = await this.#adapters.leftHere();
        assertHolds(here.length === 0, `${here.length} things are left on this machine`);
        return `${standIn.basePath} is empty`;
      },
    };
    return { steps: [step] };
  }
}

function notHere(step: string, promise: string, reason: string): StepGroup {
  const run = () => Promise.reject(new NotHere(reason, true));
  return { steps: [{ step, promise, run }] };
}
