/** Runs the same work once at a time: who asks for it while it runs shares its outcome. Nothing is kept afterwards. */
export class SingleFlight<T> {
  readonly #running = new Map<string, Promise<T>>();

  /** The outcome of the work of that key, which is begun unless it runs already. Rejects with what it rejects with. */
  run(work: () => Promise<T>, key = ""): Promise<T> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const begun = work().finally(() => this.#running.delete(key));
    this.#running.set(key, begun);
    return begun;
  }
}
