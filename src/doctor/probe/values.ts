import { ros } from "../../routeros/console/command.ts";
import { answered, NoAnswer, type Outcome, type Question, together, unanswered } from "./question.ts";
import { findDisk, type Item, withDisk } from "./scratch.ts";

type Value = Item[string] | undefined;

/** The forms of numbers, booleans and sizes. */
export const valuesQuestion: Question = {
  names: ["numbers", "booleans", "fileSize"],
  ask: async (probe) =>
    await withDisk(probe, "value", async ({ path }) => {
      const item = await findDisk(probe.line, path, ros`size,file-size,mount-filesystem`);
      if (item === undefined) throw new NoAnswer("the router does not show the scratch disk that it made");
      return together(
        judgeNumber(item["size"]),
        judgeBoolean(item["mount-filesystem"]),
        judgeFileSize(item["file-size"]),
      );
    }),
};

/** A whole number as JSON gave it. */
export function judgeNumber(value: Value): Outcome {
  if (typeof value === "bigint") return answered({ numbers: "number" });
  if (typeof value === "string" && /^\d+$/.test(value)) return answered({ numbers: "text" });
  return unanswered("numbers", `a size is given as ${show(value)}`);
}

/** A boolean as JSON gave it. */
export function judgeBoolean(value: Value): Outcome {
  if (typeof value === "boolean") return answered({ booleans: "boolean" });
  if (value === "yes" || value === "no") return answered({ booleans: "yes-no" });
  return unanswered("booleans", `a boolean is given as ${show(value)}`);
}

/** A `file-size` as JSON gave it. */
export function judgeFileSize(value: Value): Outcome {
  if (value === undefined) return answered({ fileSize: "absent" });
  const isPlain = typeof value === "bigint" || (typeof value === "string" && /^\d+$/.test(value));
  if (isPlain) return answered({ fileSize: "bytes" });
  if (typeof value === "string") return answered({ fileSize: "human" });
  return unanswered("fileSize", `file-size is given as ${show(value)}`);
}

function show(value: Value): string {
  return JSON.stringify(typeof value === "bigint" ? String(value) : value) ?? "nothing";
}
