import { type Fragment, ros } from "../../routeros/console/command.ts";
import {
  answered,
  answerOf,
  NoAnswer,
  type Outcome,
  type Probe,
  type Question,
  together,
  unanswered,
} from "./question.ts";
import { frameNumber, withDisk } from "./scratch.ts";

/** What conditions find, and what becomes of a change when they find nothing. */
export const conditionsQuestion: Question = {
  names: ["emptyFind", "unknownProperty", "textMatch"],
  ask: async (probe) =>
    together(
      await askEmptyFind(probe),
      await askUnknownProperty(probe),
      await answerOf("textMatch", () => askTextMatch(probe)),
    ),
};

type EmptyFind = "silent" | "item-id-error" | "no-such-item";

async function askEmptyFind(probe: Probe): Promise<Outcome> {
  const nobody = probe.names.name("none");
  const set = await endOf(probe, ros`/disk set [find where slot=${nobody}] comment=${""}`);
  const remove = await endOf(probe, ros`/disk remove [find where slot=${nobody}]`);
  if (set.kind !== undefined && set.kind === remove.kind) return answered({ emptyFind: set.kind });
  return unanswered("emptyFind", `set: ${set.words || "silent"}; remove: ${remove.words || "silent"}`);
}

async function endOf(
  { line }: Probe,
  statement: Fragment,
): Promise<{ readonly kind: EmptyFind | undefined; readonly words: string }> {
  const { done, words } = await line.run([statement], [ros`:len ${"x"}`]);
  if (done) return { kind: "silent", words: "" };
  if (/no such item/i.test(words)) return { kind: "no-such-item", words };
  return { kind: /expected item id/i.test(words) ? "item-id-error" : undefined, words };
}

async function askUnknownProperty({ line }: Probe): Promise<Outcome> {
  const { done, frames } = await line.run([], [ros`:len [/disk find where rds-csi-probe=${"x"}]`]);
  if (!done) return answered({ unknownProperty: "error" });
  const found = frameNumber(frames[0]);
  if (found === 0) return answered({ unknownProperty: "nothing" });
  return unanswered("unknownProperty", `a property that does not exist matched ${found} disks: beware`);
}

async function askTextMatch(probe: Probe): Promise<Outcome> {
  const [comment, otherCase] = ["Probe", "pROBE"];
  return await withDisk(probe, "case", async ({ slot }) => {
    const count = async (wanted: string) => {
      const query = ros`:len [/disk find where slot=${slot} and comment=${wanted}]`;
      return frameNumber((await probe.line.run([], [query])).frames[0]);
    };
    if (await count(comment) !== 1) throw new NoAnswer("a disk is not found by its own comment");
    return answered({ textMatch: await count(otherCase) === 0 ? "exact" : "ignore-case" });
  }, { more: ros`nvme-tcp-export=${false} comment=${comment}` });
}
