/** Hears of events. It never throws, waits, or changes what is done. */
export interface EventListener<Event> {
  occurred(event: Event): void;
}

/** Hears nothing. */
export const unheard: EventListener<unknown> = { occurred() {} };

/** One listener that hands each event to several. */
export function fanOut<Event>(...listeners: readonly EventListener<Event>[]): EventListener<Event> {
  return {
    occurred: (event) => {
      for (const listener of listeners) listener.occurred(event);
    },
  };
}
