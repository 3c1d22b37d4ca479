import { allocationQuestion } from "./allocation.ts";
import { commandLengthQuestion } from "./command_length.ts";
import { conditionsQuestion } from "./conditions.ts";
import { copyReturnQuestion } from "./copy_return.ts";
import { copySharingQuestion } from "./copy_sharing.ts";
import { diskSizesQuestion } from "./disk_sizes.ts";
import { failuresQuestion } from "./failures.ts";
import { filesQuestion } from "./files.ts";
import { growthQuestion } from "./growth.ts";
import { hostListQuestion } from "./host_list.ts";
import { interleavingQuestion } from "./interleaving.ts";
import { outputLengthQuestion } from "./output_length.ts";
import { printingQuestion } from "./printing.ts";
import type { Question } from "./question.ts";
import { rebootsQuestion } from "./reboots.ts";
import { sessionCountQuestion } from "./session_count.ts";
import { slotsQuestion } from "./slots.ts";
import { subvolumesQuestion } from "./subvolumes.ts";
import { textsQuestion } from "./texts.ts";
import { valuesQuestion } from "./values.ts";
import { withdrawalQuestion } from "./withdrawal.ts";

/** Everything that a probe asks, in this order: later questions build on what earlier ones found out. */
export const questions: readonly Question[] = [
  printingQuestion,
  failuresQuestion,
  commandLengthQuestion,
  outputLengthQuestion,
  valuesQuestion,
  conditionsQuestion,
  slotsQuestion,
  textsQuestion,
  diskSizesQuestion,
  filesQuestion,
  subvolumesQuestion,
  allocationQuestion,
  copySharingQuestion,
  copyReturnQuestion,
  growthQuestion,
  withdrawalQuestion,
  hostListQuestion,
  interleavingQuestion,
  sessionCountQuestion,
  rebootsQuestion,
];
