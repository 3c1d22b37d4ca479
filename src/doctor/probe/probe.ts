import type { RouterAnswers } from "../../router_profile/answers.ts";
import type { RouterProfile } from "../../router_profile/profile.ts";
import { VolumeError } from "../../volume/errors.ts";
import { leaveNothing, NotClean, removeAll } from "./ending.ts";
import { findLeftovers, type ScratchPlace } from "./leftovers.ts";
import { Line, RouterGone } from "./session.ts";
import { ScratchNames } from "./names.ts";
import type { ProbeOptions } from "./options.ts";
import { NoAnswer, type Outcome, type Probe, type Question, unanswered } from "./question.ts";
import { questions } from "./questions.ts";
import { profileOf, type Site, surveySite, usualLegend } from "./survey.ts";
import { askLegend, askVocabulary } from "./vocabulary.ts";

/** What a probe found out. */
export interface Probed {
  readonly profile: RouterProfile;
  /** Why the other questions have no answer. */
  readonly unanswered: Readonly<Record<string, string>>;
}

/**
 * Asks a router everything that differs between routers, on scratch volumes, and removes them again, whatever happens.
 *
 * @throws {VolumeError} precondition when the folder is none that may be used, or something is left that the router does
 * not let go
 * @throws {VolumeError} unavailable when the router cannot be asked; cancelled when it was stopped
 */
export async function probeRouter(options: ProbeOptions): Promise<Probed> {
  const lines: Line[] = [];
  const open = () => {
    lines.push(new Line(options));
    return lines.at(-1)!;
  };
  const line = open();
  try {
    const site = await surveySite(line, options.basePath);
    const place = { basePath: options.basePath, pool: site.pool };
    options.say(`${site.name}, on ${options.basePath}`);
    await removeEarlier(line, place, options);
    return await askThenCleanUp({ lines, open }, site, place, options);
  } catch (error) {
    // What failed on the way down is not what matters.
    if (!(error instanceof NotClean)) options.signal.throwIfAborted();
    throw error;
  } finally {
    for (const line of lines) line.close();
  }
}

/** The connections of a probe; the first is that for everything that needs only one. */
interface Lines {
  readonly lines: readonly Line[];
  open(): Line;
}

/** What a probe that was killed has left is shown, and removed. */
async function removeEarlier(line: Line, place: ScratchPlace, options: ProbeOptions): Promise<void> {
  const earlier = await findLeftovers(line, place);
  if (earlier.length === 0) return;
  for (const { what } of earlier) options.say(`left by an earlier probe, and removed now: ${what}`);
  await removeAll(line, place, false, options);
}

async function askThenCleanUp(
  lines: Lines,
  site: Site,
  place: ScratchPlace,
  options: ProbeOptions,
): Promise<Probed> {
  let failure: unknown;
  try {
    return await askAll(lines, site, options);
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    await leaveNothing(lines.lines, place, failure, options);
  }
}

async function askAll({ lines, open }: Lines, site: Site, options: ProbeOptions): Promise<Probed> {
  const line = lines[0]!;
  const names = new ScratchNames(options.basePath, options.random);
  options.say(`everything made is called ${names.tag}…`);
  const vocabulary = await askVocabulary(line, names, site.version);
  const legend = await askLegend(line, site.pool.slot, usualLegend(site.version));
  const answers: Partial<RouterAnswers> = {};
  const reasons: Record<string, string> = {};
  const probe: Probe = {
    ...options,
    line,
    names,
    vocabulary,
    pool: site.pool,
    races: options.races ?? 100,
    known: answers,
    another: open,
  };
  for (const question of questions) {
    options.say(`asking: ${question.names.join(", ")}`);
    const outcome = await askOne(question, probe);
    Object.assign(answers, outcome.answers);
    Object.assign(reasons, outcome.unanswered);
    report(outcome, options);
  }
  return { profile: { ...profileOf(site, vocabulary, legend), answers }, unanswered: reasons };
}

/** A question that cannot be answered stops none behind it; a router that is gone stops them all. */
async function askOne(question: Question, probe: Probe): Promise<Outcome> {
  try {
    return await question.ask(probe);
  } catch (error) {
    const isAnswer = error instanceof NoAnswer ||
      (VolumeError.is(error, "unavailable") && !(error instanceof RouterGone));
    if (!isAnswer) throw error;
    return noneOf(question, error.message);
  }
}

function noneOf({ names }: Question, reason: string): Outcome {
  return {
    answers: {},
    unanswered: Object.assign({}, ...names.map((name) => unanswered(name, reason).unanswered)),
  };
}

function report({ answers, unanswered }: Outcome, { say }: ProbeOptions): void {
  for (const [name, value] of Object.entries(answers)) {
    say(`${name}: ${value === Infinity ? "unlimited" : value}`);
  }
  for (const [name, reason] of Object.entries(unanswered)) say(`${name}: no answer, as ${reason}`);
}
