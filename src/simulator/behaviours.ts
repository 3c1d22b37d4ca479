import { defaultAnswers, type RouterAnswers } from "../router_profile/answers.ts";

/** How the simulator answers what is unknown about routers: a knob for each question. */
export type Knobs = RouterAnswers;

/** What the simulator answers unless it is told otherwise. */
export const defaultKnobs: Knobs = defaultAnswers;
