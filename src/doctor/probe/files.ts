import { ros } from "../../routeros/console/command.ts";
import { fileName } from "../../routeros/store/queries.ts";
import {
  answered,
  answerOf,
  NoAnswer,
  type Outcome,
  type Probe,
  type Question,
  together,
} from "./question.ts";
import { addDisk, discard, findDisk, findFile, mebibyte, withDisk } from "./scratch.ts";

/** Files in use, and folders that are missing. */
export const filesQuestion: Question = {
  names: ["attachedFile", "parentDirectory"],
  ask: async (probe) =>
    together(
      await answerOf("attachedFile", () => askAttachedFile(probe)),
      await answerOf("parentDirectory", () => askParentDirectory(probe)),
    ),
};

async function askAttachedFile(probe: Probe): Promise<Outcome> {
  const { line } = probe;
  return await withDisk(probe, "used", async ({ path }) => {
    const name = fileName(path);
    if (await findFile(line, path) === undefined) throw new NoAnswer("the file of a disk does not show");
    await line.run([ros`/file remove [find where name=${name}]`], [
      ros`:len [/file find where name=${name}]`,
    ]);
    const file = await findFile(line, path);
    return answered({ attachedFile: file === undefined ? "removed" : "refused" });
  });
}

async function askParentDirectory(probe: Probe): Promise<Outcome> {
  const { line, names } = probe;
  // Where no disk can be made at all, a missing folder is not the reason.
  await withDisk(probe, "beside", () => Promise.resolve());
  const folder = names.path("folder");
  const disk = { ...names.disk("inside"), path: `${folder}/${names.name("inside")}.img` };
  const { done } = await addDisk(line, { ...disk, sizeBytes: mebibyte });
  const added = done ? await findDisk(line, disk.path, ros`type`) : undefined;
  await discard(line, disk.path, folder);
  return answered({ parentDirectory: added === undefined ? "must-exist" : "made" });
}
