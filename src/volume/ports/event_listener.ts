/** Receives events. It never throws, waits, or affects the caller. */
export interface EventListener<Event> {
  occurred(event: Event): void;
}

/** Ignores all events. */
export const unheard: EventListener<unknown> = { occurred() {} };

/** A listener that passes each event to several others. */
export function fanOut<Event>(...listeners: readonly EventListener<Event>[]): EventListener<Event> {
  return {
    occurred: (event) => {
      for (const listener of listeners) listener.occurred(event);
    },
  };
}
